import { join } from "node:path"
import { expect, test } from "vitest"
import {
  assistantMessage,
  opencodeDatabase,
  reply,
  step,
  textPart,
  userMessage,
} from "../support/opencode-databases.ts"
import { tempDir } from "../support/temp.ts"
import { warmDex as dex, syncHome } from "../support/warm.ts"

const T = 1_790_000_000_000
const read = async (home: string, ...args: string[]) => JSON.parse((await dex(home, [...args, "--json"])).stdout)
const listed = async (home: string) => (await read(home, "list", "--all")).conversations

/** The changes that 2.x makes to a database of 1.x at its first start, and what the person did next. */
test.each([
  ["opencode", "opencode.db"],
  ["opencode", "opencode-dev.db"],
  ["kilo", "kilo.db"],
  ["mimocode", "mimocode.db"],
])(
  "a conversation of %s in %s continues after the upgrade to version 2 with the same numbers",
  async (source, name) => {
    const home = tempDir()
    const db = opencodeDatabase(join(home, ".local", "share", source, name), { first: true })
    db.session("ses_q", T, "Why the queue stalls")
    db.message(
      "ses_q",
      "msg_1",
      T,
      userMessage,
      textPart("Why does the pangolin queue stall?"),
      textPart("a note", { synthetic: true }),
    )
    db.message("ses_q", "msg_2", T + 1_000, assistantMessage, step(100, 10), textPart("A lock is held."), step(10, 2))
    await syncHome(home)
    const [before] = await listed(home)
    expect(before).toMatchObject({ title: "Why the queue stalls", message_count: 2 })

    db.db.exec(`create table session_v2 as select *, null as fork_session_id from session;
    create table session_message (id text primary key, session_id text, type text, seq integer, time_created integer,
      time_updated integer, data text)`)
    db.row("ses_q", "msg_1", T, "user", { text: "Why does the pangolin queue stall?" })
    db.row("ses_q", "msg_1s", T, "synthetic", { text: "a note" })
    db.row("ses_q", "msg_2", T + 1_000, "assistant", reply(textPart("A lock is held.")))
    db.row("ses_q", "msg_3", T + 9_000, "user", { text: "And does the aardvark queue stall, too?" })
    db.row("ses_q", "msg_4", T + 10_000, "assistant", reply(textPart("No.")))
    await syncHome(home)

    const [after] = await listed(home)
    expect(after).toMatchObject({ id: before.id, title: "Why the queue stalls", message_count: 5 })
    // Both steps of the first answer count, and the new one; the new table has only the last of the two.
    expect((await read(home, "usage", "agent")).rows[0].input).toBe(120)
    const [shown] = (await read(home, "show", "ses_q", "--format", "full")).conversations
    const messages: { index: number; state?: string }[] = shown.messages
    expect(messages.map(({ index, state }) => [index, state])).toEqual(
      [1, 3, 2, 4, 5].map((number) => [number, undefined]),
    )
    const found = await read(home, "search", "aardvark")
    expect(found.results[0].id).toBe(`${source}:ses_q`)
    expect((await read(home, "sync")).added_messages).toBe(0)

    // Sessions deleted there are kept here.
    db.db.exec("delete from session_message; delete from session_v2; delete from message; delete from session;")
    await syncHome(home)
    expect(await listed(home)).toHaveLength(1)
    db.close()
  },
)
