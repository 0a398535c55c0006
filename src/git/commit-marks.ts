import { createHash } from "node:crypto"

/** Facts in a commit's message that are not in its diff. */
export type CommitMarks = {
  /** The description of the breaking change in the message. */
  breaking?: string
  /** The subject of the commit that this one reverts, and its hash if the message names it. */
  reverts?: { subject: string; hash?: string }
}

const BREAKING_FOOTER =
  /^BREAKING[ -]CHANGE[S]?(?:\([^)\n]*\))?:[ \t]*(?<what>\S[^\n]*(?:\n(?!\s*\n|[A-Za-z][\w-]*(?::[ \t]|[ \t]#))[^\n]+)*)/m
const BREAKING_SUBJECT = /^[a-z][\w-]*(?:\([^()\n]*\))?!:[ \t]*(?<what>\S.*)$/i
const REVERT = /^Revert(?:ed)?:? "(?<subject>.+)"$|^revert(?:\([^()\n]*\))?!?:[ \t]*(?<plain>\S.*)$/i
const REVERTED_HASH = /\bThis reverts commit (?<hash>[0-9a-f]{7,64})\b|^Refs?: (?<ref>[0-9a-f]{7,64})\b/im
const MAX_LENGTH = 500

/** Identifies a commit by its subject, which survives a rebase and which a revert quotes. */
export function subjectKey(subject: string): string {
  return createHash("sha1").update(subject.trim()).digest("hex").slice(0, 16)
}

/** Parses the footers and marks of Conventional Commits and the text of `git revert`. Ignores a revert of a revert. */
export function parseCommitMarks(subject: string, body: string): CommitMarks {
  const breaking = BREAKING_FOOTER.exec(body)?.groups?.what ?? BREAKING_SUBJECT.exec(subject)?.groups?.what
  const reverts = revertOf(subject, body)
  return {
    breaking: breaking?.replaceAll(/\s+/g, " ").trim().slice(0, MAX_LENGTH),
    reverts,
  }
}

function revertOf(subject: string, body: string): CommitMarks["reverts"] {
  const { subject: quoted, plain } = REVERT.exec(subject)?.groups ?? {}
  const reverted = quoted ?? plain
  if (reverted === undefined || (quoted !== undefined && REVERT.test(quoted))) return undefined
  const { hash, ref } = REVERTED_HASH.exec(body)?.groups ?? {}
  const revertedHash = hash ?? ref
  return { subject: reverted.slice(0, MAX_LENGTH), hash: revertedHash?.toLowerCase() }
}
