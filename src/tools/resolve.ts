import { DexError } from "../core/error.ts"
import { formatRef, parseRef, type Ref } from "../core/ref.ts"
import type { ConversationRow } from "../store/store.ts"
import type { Dex } from "./context.ts"

/** The conversation that a person or an agent named: by ref, by a unique prefix, or by its row in the last listing. */
export async function resolveRef(dex: Dex, text: string): Promise<{ row: ConversationRow; number?: number }> {
  const typed = text.trim()
  const listed = /^\d{1,3}$/.test(typed) ? dex.lastListing()[Number(typed) - 1] : undefined
  const query = parseRef(listed ?? typed)
  if (!query)
    throw new DexError(
      "bad_ref",
      `"${typed}" is not a ref. A ref looks like claude_code:1f3c2a#12; \`dex list\` and \`dex search\` print them.`,
    )
  const rows = await (await dex.store()).resolve(query)
  const [row, ...others] = rows.filter(
    (candidate) => !candidate.private || candidate.project === dex.project || listed === undefined,
  )
  if (!row) throw notFound(typed)
  if (row.private && row.project !== dex.project) {
    throw new DexError(
      "private",
      `That conversation belongs to a private project (${row.project}). Run dex inside that folder to read it.`,
    )
  }
  if (others.length > 0) {
    const names = rows.slice(0, 5).map((candidate) => formatRef(candidate.ref))
    throw new DexError(
      "ambiguous_ref",
      `"${typed}" could be any of: ${names.join(", ")}${rows.length > 5 ? ", …" : ""}. Type more of it.`,
    )
  }
  return { row, ...(query.number !== undefined && { number: query.number }) }
}

function notFound(typed: string): DexError {
  if (/^\d{1,3}$/.test(typed))
    return new DexError(
      "not_found",
      `There is no row ${typed}: nothing was listed in this terminal yet, or the list was shorter. Run \`dex list\` or \`dex search\` first.`,
    )
  return new DexError(
    "not_found",
    `No conversation "${typed}" is known. \`dex list\` shows what there is; \`dex sync\` reads what is new.`,
  )
}

/** `--session current` is the conversation the caller is in; the agent says so in its environment. */
export async function resolveSession(dex: Dex, session: string | undefined): Promise<Ref | undefined> {
  if (session === undefined || session === "all") return undefined
  if (session !== "current") return (await resolveRef(dex, session)).row.ref
  const current = currentSession(dex)
  if (current === undefined)
    throw new DexError(
      "no_session",
      "No current session is known here: the agent did not say which one it is. Name one: --session <ref>.",
    )
  return (await resolveRef(dex, current)).row.ref
}

/** Agents that tell their children which session they are. */
export function currentSession(dex: Pick<Dex, "machine">): string | undefined {
  const { env } = dex.machine
  if (env.CLAUDE_CODE_SESSION_ID) return `claude_code:${env.CLAUDE_CODE_SESSION_ID}`
  if (env.CODEX_THREAD_ID) return `codex:${env.CODEX_THREAD_ID}`
  return undefined
}
