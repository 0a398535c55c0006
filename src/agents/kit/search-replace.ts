import type { Hunk } from "../../core/conversation.ts"
import { hunksOfReplacement } from "./effects.ts"

/** A block that names what is to be replaced and by what, between `<<<<<<< SEARCH`, `=======` and `>>>>>>> REPLACE`. */
export type SearchReplace = { search: string[]; replace: string[]; firstLine: number; lastLine: number }

/** The whole blocks of a text, with the lines that they take in it. One that does not end is none. */
export function searchReplaceBlocks(lines: readonly string[]): SearchReplace[] {
  const blocks: SearchReplace[] = []
  let open: SearchReplace | undefined
  let into: "search" | "replace" = "search"
  for (const [index, line] of lines.entries()) {
    if (/^<{5,9} SEARCH>?\s*$/.test(line)) {
      open = { search: [], replace: [], firstLine: index, lastLine: index }
      into = "search"
    } else if (open && /^={5,9}\s*$/.test(line)) into = "replace"
    else if (open && /^>{5,9} REPLACE\s*$/.test(line)) {
      blocks.push({ ...open, lastLine: index })
      open = undefined
    } else open?.[into].push(line)
  }
  return blocks
}

/** Roo Code puts the line that a block begins at before what it searches for. */
export function hunksOfBlocks(text: string, path: string): Hunk[] {
  return searchReplaceBlocks(text.split("\n")).flatMap(({ search, replace }) => {
    const rule = search.findIndex((line) => /^-{5,9}$/.test(line))
    const hasPlace = rule !== -1 && rule < 3 && search.slice(0, rule).every((line) => /^:\w+:/.test(line))
    return hunksOfReplacement(path, search.slice(hasPlace ? rule + 1 : 0).join("\n"), replace.join("\n"))
  })
}
