#!/bin/sh
set -eu
cat > /app/archive.sh <<'SCRIPT'
#!/bin/sh
# archive.sh SOURCE TARGET: copies the log files of SOURCE into TARGET and prints how many there were
set -eu
source=$1
target=$2
count=0
mkdir -p -- "$target"
for file in "$source"/*.log; do
    [ -f "$file" ] || continue
    cp -- "$file" "$target"/
    count=$((count + 1))
done
echo "$count"
SCRIPT
