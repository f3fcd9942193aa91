# SPDX-License-Identifier: Apache-2.0
"""The shell scripts that run, find, end and remove jobs, here and on nodes alike.

A job is a command that outlives its applier. A shell, the wrapper, runs it and writes these files
into the folder of the job:

``pid``
    Process id of the wrapper, which is also its session and process group; its start time (field 22
    of ``/proc/PID/stat``), the boot id, and the seconds since the boot. Written before the command
    begins.
``out``
    Both output streams of the command.
``dropped``
    Number of bytes at the beginning of ``out`` whose space on the disk was freed, once there are
    any. Written before they are freed; after that, they read as NUL.
``dropped.new``
    Room for the next ``dropped``, kept because the output may fill the disk.
``rc``
    Exit code of the command, as a shell reports it, once the line is whole. Written after the
    command has ended.

The scripts need a POSIX shell, ``setsid``, ``base64``, and Linux's ``/proc``.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence

from applier.machines.attempt_jobs import ENDED
from applier.machines.job_names import REMOVED, VARIABLE, JobName

#: Above this many bytes of output, the space of all but the last ``_KEPT`` bytes is freed.
_ROOM, _KEPT = 32 << 20, 16 << 20

#: Compare the size of the output with ``_ROOM`` once a second; end with the wrapper, or at once by
#: SIGTERM. On a file system that cannot free a part of a file, all output is dropped; output that
#: is written at that moment is lost, and not counted. Behind the end of a file, nothing is freed,
#: and it is seen whether anything can be. The number of bytes is written over the one in the file,
#: because a new one needs room; without room for it, nothing is freed. Arguments: folder, process
#: id of the wrapper.
_TRIM = r"""
dropped=0
trap "kill \$!; exit" TERM
while sleep 1 & wait $! && kill -0 "$2"; do
	[ -s "$1/dropped.new" ] || echo 0 >"$1/dropped.new"
	size=$(wc -c <"$1/out")
	[ $((size - dropped)) -gt ROOM ] || continue
	is_all= next=$(((size - KEPT) / 4096 * 4096))
	fallocate -p -o 4096 -l 4096 "$1/dropped.new" || is_all=1 next=$size
	echo $next 1<>"$1/dropped.new" && mv "$1/dropped.new" "$1/dropped" || continue
	dropped=$next
	[ "$is_all" ] || { fallocate -p -o 0 -l $dropped "$1/out"; continue; }
	: >"$1/out"
	dd if=/dev/null of="$1/out" bs=1 seek=$dropped
done 2>/dev/null
""".replace("ROOM", str(_ROOM)).replace("KEPT", str(_KEPT))

#: Arguments: the folder, the working directory or an empty text, the program with its arguments.
#: The trap lets the wrapper outlive a signal to its group; the command does not inherit it. Only
#: one wrapper creates ``pid``, which nobody else removes, and any other one ends. On a full disk
#: the wrapper removes it again, or waits until there is room for the exit code.
WRAPPER = r"""
job_folder=$1 job_cwd=$2
shift 2
trap : HUP INT TERM
job_field() { shift 19; job_start=$1; }
read -r job_line </proc/$$/stat
job_field ${job_line##*) }
read -r job_boot </proc/sys/kernel/random/boot_id
read -r job_up job_line </proc/uptime
set -C
true >"$job_folder/pid" || exit 0
set +C
echo $$ $job_start $job_boot $job_up >"$job_folder/pid" || { rm "$job_folder/pid"; exit 0; }
echo 0 >"$job_folder/dropped.new"
( unset VARIABLE; exec /bin/sh -c 'TRIM' trim "$job_folder" $$ ) &
job_trim=$!
(
	[ -z "$job_cwd" ] || cd -- "$job_cwd" || exit 126
	exec "$@"
) </dev/null >>"$job_folder/out" 2>&1
job_code=$?
kill $job_trim
while [ -d "$job_folder" ] && ! echo $job_code >"$job_folder/rc"; do sleep 0.5; done 2>/dev/null
""".replace("VARIABLE", VARIABLE).replace("TRIM", _TRIM)

#: ``look FOLDER`` sets ``state``: missing, none (no ``pid`` yet), runs, ended CODE, restarted (the
#: machine was), killed (with its wrapper). ``marked MARK`` prints the processes that carry a mark,
#: without the wrapper. ``starting MARK`` prints those that are a wrapper of ``$folder`` without a
#: ``pid`` yet. ``members MARK`` prints those of the mark, and of the process group ``$group``.
_FUNCTIONS = r"""
place() { root=${1:-${XDG_STATE_HOME:-$HOME/.local/state}/actionplan/jobs}; }
is_alive() { [ "$1" != Z ] && [ "$1" != X ] && [ "${20}" = "${since:-${20}}" ]; }
lives() {
	{ read -r line </proc/$1/stat; } 2>/dev/null || return 1
	since=$2
	is_alive ${line##*) }
}
drop() { dropped=0; [ ! -s "$1/dropped" ] || read -r dropped <"$1/dropped"; }
has_ended() { [ -s "$1/rc" ] && read -r code <"$1/rc" && state="ended $code"; }
look() {
	pid= start= boot= up= state=missing
	[ -d "$1" ] || return 0
	has_ended "$1" && return
	state=none
	[ -s "$1/pid" ] && read -r pid start boot up <"$1/pid" || return 0
	read -r now </proc/sys/kernel/random/boot_id
	if [ "$boot" != "$now" ]; then state=restarted
	elif lives "$pid" "$start"; then state=runs
	else has_ended "$1" || state=killed
	fi
}
marked() {
	for file in $(grep -lsF "VARIABLE=$1" /proc/[0-9]*/environ); do
		process=${file#/proc/} process=${process%/environ}
		[ "$process" != "$pid" ] && lives "$process" || continue
		tr '\0' '\n' 2>/dev/null <"$file" | grep -qxF "VARIABLE=$1" && echo "$process"
	done
}
starting() {
	for process in $(marked "$1"); do
		{ tr '\0' '\n' <"/proc/$process/cmdline"; } 2>/dev/null | grep -qxF "$folder" &&
			echo "$process"
	done
}
is_member() { [ "$4" = "$group" ] && [ "$1" != "$group" ] && [ "$2" != Z ] && [ "$2" != X ]; }
is_in_group_of_pid() { [ "$4" = "$pid" ]; }
members() {
	[ -n "$group" ] && for file in /proc/[0-9]*/stat; do
		{ read -r line <"$file"; } 2>/dev/null || continue
		is_member "${line%% *}" ${line##*) } && echo "${line%% *}"
	done
	marked "$1"
}
""".replace("VARIABLE", VARIABLE)

#: Print a line for each job whose folder begins with a prefix: the tag, the folder, the state, its
#: exit code or ``-``, the seconds that it has been running or ``-``, and the processes that carry
#: the mark although the wrapper does not run; of a job that has not begun, which is no permit, only
#: a wrapper that starts. The place of a node depends on who logs in there: if it has no such
#: folder, print a line with the state ``elsewhere`` for processes whose folder is in another place.
#: Marks of other users cannot be read, but the folder is an argument of the wrapper. Arguments:
#: tag, place or an empty text, prefix, mark.
_FIND = (
    _FUNCTIONS
    + r"""
tag=$1 prefix=$3 mark=$4 found=
processes() {
	case $state.${folder##*/} in
	killed.* | none.permit.*) marked "$mark" ;;
	*) starting "$mark" ;;
	esac
}
place "$2"
# What start-up files have printed may have no end of line.
echo
{ read -r now_up line </proc/uptime; } 2>/dev/null
for folder in "$root/$prefix"*; do
	look "$folder"
	code_or=- age=- left=
	case $state in
	missing) continue ;;
	ended*) code_or=$code ;;
	runs) age=$((${now_up%.*} - ${up%.*})) ;;
	none | killed) [ -z "$mark" ] || left=$(processes) ;;
	esac
	echo "$tag" "${folder##*/}" "${state% *}" "$code_or" "$age" $left
	found=1
done
[ -z "$2$found" ] && [ -n "$mark" ] || exit 0
wrappers=$(grep -ls "[/]$prefix" /proc/[0-9]*/cmdline | tr -cd '0-9\n')
left=$({ marked "$mark"; echo "$wrappers"; } | sort -nu)
[ -z "$left" ] || echo "$tag" "${prefix}0" elsewhere - - $left
"""
)

#: Begin a job unless it has begun, copy its output, and report its end on the error stream. Before
#: the output comes a line with its place in ``out``. If output is dropped before it is copied, the
#: script reports ``behind`` and ends. Arguments: tag, folder, mark, bytes of output to leave out, 1
#: if the job may begin, 2 if it may begin in a folder that is there. :func:`running` makes the
#: function ``start``.
_RUN = r"""
tag=$1 mark=$3 seen=$4 may_begin=$5 started=
place ''
folder=$root/$2
tell() { echo "$tag" "$@" >&2; }
start_once() {
	for need in setsid base64; do
		command -v "$need" >/dev/null || { tell refused "$need: not found"; exit 0; }
	done
	mkdir -p -- "$root"
	why='ENDED'
	if [ "$may_begin" = 1 ] && why=$(mkdir -m 700 -- "$folder" 2>&1); then start; return; fi
	[ -d "$folder" ] || { tell refused "$why"; exit 0; }
	look "$folder"
	[ "$state" = none ] && [ -z "$(starting "$mark")" ] && start
}
# The wrapper has not begun, and no process will.
has_died() {
	[ "$turn" -ge 10 ] && [ -z "$(starting "$mark")" ] || return 1
	[ -n "$started" ] && lives "$started" && return 1
	look "$folder"
	[ "$state" = none ]
}
# Copy up to $1 pieces; each is kept until it is known that it was not dropped before it was read.
copy() {
	left=$1
	while [ "$left" -gt 0 ]; do
		read -r line at </proc/$$/fdinfo/3
		piece=$(dd bs=65536 count=16 2>/dev/null <&3 | base64)
		drop "$folder"
		[ "$at" -ge "$dropped" ] || { tell behind; exit 0; }
		[ -n "$piece" ] || return 0
		echo "$piece" | base64 -d || exit 0
		left=$((left - 1))
	done
}
echo "$tag"
[ "$may_begin" = 0 ] || start_once
[ -d "$folder" ] || { tell missing; exit 0; }
exec 3<>"$folder/out"
drop "$folder"
[ "$seen" -ge "$dropped" ] || seen=$dropped
echo "$seen"
[ "$seen" = 0 ] || dd bs=1 skip="$seen" count=0 2>/dev/null <&3
turn=0 told=
while [ -d "/proc/$PPID" ]; do
	look "$folder"
	case $state in
	runs) [ -n "$told" ] || { read -r now_up line </proc/uptime; told=1
		tell begun "$((${now_up%.*} - ${up%.*}))"; } ;;
	none) has_died && break ;;
	killed) [ -n "$(marked "$mark")" ] || break ;;
	*) break ;;
	esac
	copy 16
	case $turn in [0-2]) pause=0.02 ;; ?) pause=0.1 ;; [1-4]?) pause=0.2 ;; *) pause=0.5 ;; esac
	turn=$((turn < 99 ? turn + 1 : turn))
	sleep "$pause"
done
size=$(wc -c <"$folder/out")
copy "$((size / 1048576 + 1))"
case $state in killed) tell "$state" $(marked "$mark") ;; *) tell $state ;; esac
""".replace("ENDED", ENDED)

#: End the processes of a job: SIGTERM, then SIGKILL for those that are left after some tenths of a
#: second. The wrapper stays, to write the exit code. Then print a line as _FIND does, with the tag
#: ``job``, after what start-up files may have printed. Arguments: place or an empty text, folder,
#: mark, tenths.
_END = (
    _FUNCTIONS
    + r"""
place "$1"
folder=$root/$2 mark=$3 group=
look "$folder"
case $state in
runs) group=$pid ;;
# Its number may belong to another process or group by now, unless a process with the mark keeps it.
ended* | killed)
	read -r pid line <"$folder/pid"
	for process in $(marked "$mark"); do
		{ read -r line <"/proc/$process/stat"; } 2>/dev/null || continue
		is_in_group_of_pid "$process" ${line##*) } && group=$pid
	done ;;
esac
each() { for process in $(members "$mark"); do kill -s "$1" "$process" 2>/dev/null; done; }
[ -n "$group" ] && kill -s TERM -- "-$group" 2>/dev/null
for process in $(marked "$mark"); do kill -s TERM "$process" 2>/dev/null; done
turn=0
while [ "$turn" -lt "$4" ] && [ -n "$(members "$mark")" ]; do
	sleep 0.1
	turn=$((turn + 1))
done
turn=0
while [ "$turn" -lt 10 ] && [ -n "$(members "$mark")" ]; do
	each KILL
	sleep 0.05
	turn=$((turn + 1))
done
left=$(members "$mark") turn=0
while look "$folder" && [ "$state" = runs ] && [ -z "$left" ] && [ "$turn" -lt 20 ]; do
	sleep 0.05
	turn=$((turn + 1))
done
case $state in ended*) ;; *) state="$state -" ;; esac
echo
echo job "$2" $state - $left
exit 0
"""
)

#: Remove jobs, each of which is renamed first, and the folders that interrupted removals have left.
#: Arguments: place or an empty text, folders.
_REMOVE = (
    _FUNCTIONS
    + r"""
place "$1"
shift
for name; do mv -- "$root/$name" "$root/REMOVED$name" 2>/dev/null; done
rm -rf -- "$root"/REMOVED*
exit 0
""".replace("REMOVED", REMOVED)
)


def finding(prefix: str, mark: str, place: str = "") -> bytes:
    """Return the script that prints the jobs whose folders begin with a prefix.

    Without a ``place``, here and below, the folder of jobs is that of the user of a node.
    """
    return _with_arguments(_FIND, "job", place, prefix, mark)


def ending(folder: str, mark: str, grace_s: float, place: str = "") -> bytes:
    """Return the script that ends a job, by SIGKILL after ``grace_s`` seconds."""
    return _with_arguments(_END, place, folder, mark, round(10 * grace_s))


def removing(folders: Sequence[str]) -> bytes:
    """Return the script that removes jobs on a node."""
    return _with_arguments(_REMOVE, "", *folders)


def _with_arguments(script: str, *arguments: object) -> bytes:
    """Return a script as the input of a shell, with a line that sets its arguments before it."""
    return f"set -- {shlex.join(map(str, arguments))}\n{script}".encode()


def running(
    tag: str,
    name: JobName,
    program: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: str,
    seen: int,
    may_begin: bool,
    is_there: bool = False,
) -> bytes:
    """Return the script that begins a job on a node, or finds it, and copies its output.

    Lines about the job on the error stream begin with ``tag``. The first ``seen`` bytes of the
    output are left out. ``may_begin`` is False if the job was begun before. ``is_there`` says that
    another applier made its folder, which must not be made again. The values of ``env`` are in the
    script, the input of the shell, and so in no list of processes.
    """
    exports = [f"export {key}={shlex.quote(value)}" for key, value in env.items()]
    marked = f"export {VARIABLE}={shlex.quote(name.mark)}"
    words = shlex.join(["exec", "setsid", "/bin/sh", "-c", WRAPPER, "job"])
    command = f'{words} "$folder" {shlex.join([cwd, *program])}'
    lines = ["start() {", "(", *exports, marked, command, ") </dev/null >/dev/null 2>&1 &"]
    how = 0 if not may_begin else 2 if is_there else 1
    text = "\n".join([_FUNCTIONS, *lines, "started=$!", "}", _RUN])
    return _with_arguments(text, tag, name.folder, name.mark, seen, how)


def check(program: Sequence[str], env: Mapping[str, str], cwd: str | None) -> None:
    """Raise ValueError for a variable or an argument that a shell cannot pass on."""
    for name, value in env.items():
        if not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
            raise ValueError(f"{name!r} cannot be the name of a variable of a command")
        if "\0" in value:
            raise ValueError(f"the value of {name} has a NUL character")
    if any("\0" in word for word in (*program, cwd or "")):
        raise ValueError("embedded null byte")
