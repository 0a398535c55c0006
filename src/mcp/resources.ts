import {
  type ListResourcesResult,
  ProtocolError,
  ProtocolErrorCode,
  type ReadResourceResult,
  ResourceNotFoundError,
} from "@modelcontextprotocol/server"
import { isDexError, messageOf } from "../core/error.ts"
import type { OutputOf } from "../core/tool.ts"
import { safeLine } from "../render/terminal.ts"
import type { list } from "../tools/list/list.ts"
import { inCalls } from "./calls.ts"
import { MOST_ANSWER_TOKENS, offered } from "./definitions.ts"
import { type CallContext, type CallResult, runCall, type ServerParts } from "./run-call.ts"

const PREFIX = "dex://conversation/"
const MIME = "text/plain"
/** A person chose it, so more than a tool's usual answer; above this, Claude Code warns of an answer's size. */
const READ_TOKENS = 10_000
const PAGE = 50
/** Clients that show a menu ask for every page. */
const MOST_LISTED = 500

export const TEMPLATES = [
  {
    uriTemplate: `${PREFIX}{ref}`,
    name: "conversation",
    title: "A past conversation",
    description: `What was said in a conversation, or around one message of it. ref, percent-encoded: claude_code:1f3c, claude_code:1f3c#12, or current. The list names the newest ${MOST_LISTED}; dex_search and dex_list find all.`,
    mimeType: MIME,
  },
]

type Listed = OutputOf<typeof list>

/** The newest conversations, as dex_list tells them: private projects stay private. */
export async function listResources(
  cursor: string | undefined,
  asked: CallContext,
  parts: ServerParts,
): Promise<ListResourcesResult> {
  const offset = cursor === undefined ? 0 : Number(cursor)
  if (cursor !== undefined && !(/^[1-9]\d{0,3}$/.test(cursor) && offset < MOST_LISTED))
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, "This cursor is not one of ours. List without one.")
  const limit = Math.min(PAGE, MOST_LISTED - offset)
  const told = await askAs("dex_list", { limit, offset, max_tokens: MOST_ANSWER_TOKENS }, asked, parts)
  const { conversations, next_offset } = told.output as Listed
  const more = next_offset !== undefined && next_offset < MOST_LISTED
  return { resources: conversations.map(resourceOf), ...(more && { nextCursor: String(next_offset) }) }
}

/** The same words as dex_get gives of it, capped; what was cut is said with the call that continues. */
export async function readResource(uri: string, asked: CallContext, parts: ServerParts): Promise<ReadResourceResult> {
  const ref = refOf(uri)
  if (ref === undefined)
    throw new ResourceNotFoundError(uri, `There is no such resource. A conversation is ${PREFIX}{ref}.`)
  const told = await askAs("dex_get", { ids: [ref], max_tokens: READ_TOKENS }, asked, parts, uri)
  return { contents: [{ uri, mimeType: MIME, text: told.text }] }
}

function resourceOf({
  id,
  title,
  project,
  source,
  date,
  message_count,
  estimated_tokens,
}: Listed["conversations"][number]) {
  const where = [source, safeLine(project), date.slice(0, 10)].filter(Boolean).join(" · ")
  return {
    uri: `${PREFIX}${encodeURIComponent(id)}`,
    name: id,
    title: safeLine(title),
    description: `${where} · ${message_count} messages, ~${estimated_tokens} tokens`,
    mimeType: MIME,
    ...(date !== "" && { annotations: { lastModified: date } }),
  }
}

/** Undefined where it names no conversation. The sign before a message's number may stand as it is. */
function refOf(uri: string): string | undefined {
  if (!uri.startsWith(PREFIX)) return undefined
  try {
    return decodeURIComponent(uri.slice(PREFIX.length)) || undefined
  } catch {
    return undefined // a lone % or broken UTF-8
  }
}

/** A resource has no answer that says what went wrong: it is an error of the protocol. */
async function askAs(
  name: string,
  input: Record<string, unknown>,
  asked: CallContext,
  parts: ServerParts,
  uri?: string,
): Promise<CallResult> {
  try {
    const told = await runCall(offered.find((one) => one.mcp.name === name)!, input, asked, parts)
    if (told) return told
  } catch (error) {
    if (isDexError(error)) {
      const message = safeLine(inCalls(error.message, offered))
      throw uri === undefined
        ? new ProtocolError(ProtocolErrorCode.InternalError, message)
        : new ResourceNotFoundError(uri, message)
    }
    parts.log((error as Error)?.stack ?? String(error))
    throw new ProtocolError(
      ProtocolErrorCode.InternalError,
      `An error that should not happen: ${safeLine(messageOf(error))}. Try again; \`dex doctor\` in a shell checks dex.`,
    )
  }
  throw new ProtocolError(ProtocolErrorCode.InvalidRequest, "Cancelled.")
}
