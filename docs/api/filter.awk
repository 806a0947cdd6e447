# Shows a header's plain comments to Doxygen: a comment before a declaration as ///, one behind it as ///<, the
# first one as the file's. What looks like a tag (<pad>, block<i>) is text.
function as_text(comment) {
  gsub(/</, "\\<", comment)
  return comment
}
{
  line = $0
  start = match(line, /\/\/ ?/)
  stripped = line
  sub(/^[ \t]+/, "", stripped)
  if (NR == 1 && stripped ~ /^\/\//) print "/// @file"
  if (stripped ~ /^\/\/( |$)/) {
    # Goes on with the comment behind the declaration above, when it stands under it.
    mark = behind > 0 && start == behind ? "///<" : "///"
    if (mark == "///") behind = 0
    line = substr(line, 1, start - 1) mark as_text(substr(line, start + 2))
  } else if (match(line, /[;,{})>] +\/\/ /) && line !~ /^#/ && line !~ /^\}  \/\/ namespace/) {
    behind = RSTART + RLENGTH - 3
    line = substr(line, 1, behind - 1) "///<" as_text(substr(line, behind + 2))
  } else {
    behind = 0
  }
  print line
}
