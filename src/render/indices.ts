import { DexError } from "../core/error.ts"

/** A range; both ends are inclusive. */
export type Range = { from: number; to: number }

/** Parses `5`, `5-10` or `1,5,10-15`; `10-` means from 10 on. */
export function readIndices(text: string): Range[] {
  return text
    .split(",")
    .map((piece) => piece.trim())
    .filter((piece) => piece !== "")
    .map((piece) => {
      const match = /^#?(\d{1,9})(?:\s*(-)\s*(\d{1,9})?)?$/.exec(piece)
      const from = Number(match?.[1])
      const to = match?.[3] !== undefined ? Number(match[3]) : match?.[2] ? Number.MAX_SAFE_INTEGER : from
      if (!match || from < 1 || to < from)
        throw new DexError("bad_messages", `"${piece}" is not a range of messages. Write 5, 5-10 or 1,5,10-15.`)
      return { from, to }
    })
}

export function isInRanges(ranges: Range[], number: number): boolean {
  return ranges.some(({ from, to }) => number >= from && number <= to)
}

/** The shortest form of the numbers: `1,5,10-15`. */
export function formatIndices(numbers: number[]): string {
  const ranges: Range[] = []
  for (const number of [...new Set(numbers)].sort((a, b) => a - b)) {
    const last = ranges.at(-1)
    if (last && last.to === number - 1) last.to = number
    else ranges.push({ from: number, to: number })
  }
  return ranges.map(({ from, to }) => (from === to ? `${from}` : `${from}-${to}`)).join(",")
}
