import { createHash } from "node:crypto"
import { DexError } from "../../core/error.ts"
import { isSamePath } from "../../core/path-key.ts"
import { isRecord, parseObject, type RawRecord, record, records } from "../../core/record.ts"
import type { Bring } from "../kit/bring.ts"
import { originalId } from "./parts.ts"

/**
 * OpenCode continues a session only in the session's own folder, even if that is gone. `opencode import` moves a session that it
 * already has, so the copy gets ids of its own. They follow from the original's id and the folder: a second import changes nothing.
 */
export const opencodeBring: Bring = {
  plan: ({ id, cwds: [sessionFolder] }, folder, { platform }) => {
    if (!/^ses_\w{8,100}$/.test(id)) return undefined
    if (sessionFolder === undefined || isSamePath(sessionFolder, folder, platform)) return undefined
    const hash = createHash("sha256").update(`${id}\0${folder}`).digest("hex")
    const copy = { id: `${id.slice(0, 16)}${hash.slice(0, 14)}`, suffix: `dex${hash.slice(0, 8)}`, folder }
    return {
      type: "import",
      id: copy.id,
      exportCommand: ["opencode", "export", id],
      convert: (exported) => withNewIds(exported, copy),
      importCommand: ["opencode", "import"],
    }
  },
}

type Copy = { id: string; suffix: string; folder: string }

function withNewIds(exported: string, { id, suffix, folder }: Copy): string {
  const session = parseObject(exported)
  const info = record(session?.info)
  if (session === undefined || info === undefined || !Array.isArray(session.messages))
    throw new DexError("unreadable", "`opencode export` did not print the conversation.")
  const renamed = (value: unknown) => (typeof value === "string" ? originalId(value) + suffix : value)
  const withIds = (item: RawRecord, names: readonly string[]): RawRecord => {
    const copy = { ...item }
    for (const name of names) if (name in copy) copy[name] = renamed(copy[name])
    return "sessionID" in copy ? { ...copy, sessionID: id } : copy
  }
  const messages = session.messages.filter(isRecord).map((message) => ({
    ...message,
    info: withIds(record(message.info) ?? {}, ["id", "parentID"]),
    parts: records(message.parts).map((part) => withIds(part, ["id", "messageID"])),
  }))
  // The copy is a conversation of its own: nobody shares it, and no other one started it.
  const { share: _, parentID: __, revert, ...rest } = info
  const copy: RawRecord = { ...rest, id, directory: folder, time: { ...record(info.time), created: Date.now() } }
  if (isRecord(revert)) copy.revert = withIds(revert, ["messageID", "partID"])
  return JSON.stringify({ ...session, info: copy, messages })
}
