import { fileNameOf } from "../../learn/paths.ts"
import type { Candidate, Finder } from "./finder.ts"

// Sections of documents that speak of this file or symbol. Whoever asks brings them: they come from the search index.

const LONGEST = 200

export const findDocument: Finder = ({ documents = [] }, moment) =>
  documents.map(({ ref, heading, text }): Candidate => {
    const about = moment.symbol ?? (moment.file === undefined ? "this" : fileNameOf(moment.file))
    return {
      kind: "document",
      key: `document:${ref}`,
      title: heading,
      summary: text.length <= LONGEST ? text : `${text.slice(0, LONGEST)}…`,
      reason: `The section names ${about}.`,
      ref,
      names: [],
      features: {},
    }
  })
