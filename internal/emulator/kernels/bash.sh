# The emulator's bash kernel: reads requests on descriptor 3 as lines of base64
# (code, environment assignments, marker), answers a line on descriptor 4.
# State lives in this shell.
trap ':' INT
printf '{"e":"ready"}\n' >&4
while IFS=' ' read -r __code __env __marker __reset <&3; do
	eval "$(printf %s "$__env" | base64 -d)"
	eval "$(printf %s "$__code" | base64 -d)" </dev/null 3<&- 4>&-
	__status=$?
	eval "$(printf %s "$__reset" | base64 -d)"
	printf %s "$(printf %s "$__marker" | base64 -d)"
	printf %s "$(printf %s "$__marker" | base64 -d)" >&2
	printf '{"e":"exit","status":%d}\n{"e":"done"}\n' "$__status" >&4
done
