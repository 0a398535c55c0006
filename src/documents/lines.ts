/** The lines that an editor shows, without their ends (LF, CRLF or CR). The end of the last line opens no further one. */
export function splitLines(text: string): string[] {
  const lines = text.split(/\r\n|\n|\r/)
  if (lines.at(-1) === "") lines.pop()
  return lines
}

export const isBlank = (line: string): boolean => /^[ \t]*$/.test(line)

/** The line of a character, by its offset: always one of the file's lines. */
export function lineFinder(text: string): (offset: number) => number {
  const starts = [0]
  for (const end of text.matchAll(/\r\n|\n|\r/g)) starts.push(end.index + end[0].length)
  return (offset) => {
    let low = 0
    let high = starts.length
    while (high - low > 1) {
      const middle = (low + high) >> 1
      if (starts[middle]! <= offset) low = middle
      else high = middle
    }
    return low + 1
  }
}
