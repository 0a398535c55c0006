import { mkdirSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { KNOWLEDGE_FILE } from "../../src/core/formats.ts"
import type { Moment } from "../../src/core/suggestion.ts"
import { learn } from "../../src/learn/learn.ts"
import { openStore } from "../../src/store/history/sqlite-history.ts"
import { openKnowledge } from "../../src/store/knowledge/knowledge.ts"
import { NEW_SESSION } from "../../src/suggest/finders/finder.ts"
import { RELEVANCE_FLOOR, RELEVANCE_WEIGHTS } from "../../src/suggest/relevance.ts"
import { suggestItems } from "../../src/suggest/suggest.ts"
import { connect } from "../mcp/client.ts"
import { claudeSession } from "../support/home.ts"
import { tempDir } from "../support/temp.ts"
import { warmDex as dex } from "../support/warm.ts"

type Place = { home: string; at: string }

function project(): Place {
  const home = tempDir()
  const at = join(home, "api")
  mkdirSync(at)
  return { home, at }
}

async function answer({ home, at }: Place, ...args: string[]) {
  const { code, stdout, stderr } = await dex(home, [...args, "--json"], {}, at)
  expect([args, code, stderr]).toEqual([args, 0, expect.any(String)])
  return JSON.parse(stdout)
}

/** What a hook would suggest at this moment, with the floor of hooks. */
async function pushed({ home, at }: Place, moment: Pick<Moment, "event" | "file">) {
  const store = openStore(join(home, ".dex/history.db"))
  const knowledge = openKnowledge(join(home, `.dex/${KNOWLEDGE_FILE}`))
  await learn(store, knowledge)
  const options = { weights: RELEVANCE_WEIGHTS, floor: RELEVANCE_FLOOR, maxItems: 5 }
  const now: Moment = { ...moment, project: at, source: "codex", session: "now", at: Date.now() }
  const items = suggestItems({ knowledge }, now, NEW_SESSION, options)
  store.close()
  knowledge.close()
  return items
}

test("the person's note is pushed for its file and, without a file, at a session's start", async () => {
  const place = project()
  await answer(place, "note", "Deploys need the VPN", "--file", "deploy.sh")
  await answer(place, "note", "The staging server is rebuilt every night")
  expect(await pushed(place, { event: "before_edit", file: "deploy.sh" })).toMatchObject([
    {
      kind: "decision",
      summary: '"Deploys need the VPN"',
      reason: expect.stringMatching(/^The developer noted it on \d{4}-\d\d-\d\d for deploy\.sh\.$/),
    },
  ])
  expect(await pushed(place, { event: "session_start" })).toMatchObject([
    { summary: '"The staging server is rebuilt every night"', reason: "The developer noted it for the whole project." },
  ])
  expect(await pushed(place, { event: "before_edit", file: "other.sh" })).toEqual([])
  expect(await pushed({ ...place, at: join(place.home, "web") }, { event: "session_start" })).toEqual([])
})

test.each(["2025-11-25", "2026-07-28"])(
  "in protocol %s, an agent's note says who wrote it, and is pushed only after the person confirmed it",
  async (era) => {
    const place = project()
    const client = await connect(place.home, { era, cwd: place.at })
    const kept = await client.call("dex_note", { words: ["Deploys are frozen"], file: "deploy.sh" })
    expect(kept.structuredContent).toMatchObject({ done: "kept", notes: [{ by: "test", confirmed: false }] })
    const { ref } = (kept.structuredContent!.notes as { ref: string }[])[0]!
    const refused = await client.call("dex_note", { words: ["confirm", ref] })
    expect([refused.isError, refused.content[0]!.text]).toEqual([true, expect.stringContaining("Only a person")])
    const [listed] = (await answer(place, "note")).notes
    expect(listed).toMatchObject({ ref, by: "test", confirmed: false, text: "Deploys are frozen" })
    const found = await client.call("dex_search", { query: "deploys frozen" })
    expect(found.content[0]!.text).toContain("[written by test, not confirmed]")
    const moments = [{ event: "before_edit", file: "deploy.sh" } as const, { event: "session_start" } as const]
    for (const moment of moments) expect(await pushed(place, moment)).toEqual([])
    expect((await dex(place.home, ["decisions", "--json"], {}, place.at)).stdout).not.toContain("frozen")
    await answer(place, "note", "confirm", ref)
    expect(await pushed(place, moments[0]!)).toMatchObject([
      {
        summary: '"[written by test, confirmed by the person] Deploys are frozen"',
        reason: expect.stringMatching(
          /^An agent noted it, and the developer confirmed it, on \d{4}-\d\d-\d\d for deploy\.sh\.$/,
        ),
      },
    ])
    expect((await answer(place, "decisions")).decisions).toMatchObject([{ kind: "note", by: "agent" }])
  },
)

test("a note that rejects a decision reverses it, until the note is forgotten; an agent's note does not", async () => {
  const place = project()
  claudeSession(place.home, {
    id: "99999999-9999-4999-8999-999999999999",
    cwd: place.at,
    start: "2026-11-04T10:00:00Z",
    turns: [{ user: "We decided to keep the sessions in Redis in src/sessions.ts. Never in memory." }],
  })
  expect((await dex(place.home, ["sync"])).code).toBe(0)
  const decided = async () => {
    const { decisions } = await answer(place, "decisions")
    return decisions.filter(({ kind }: { kind: string }) => kind !== "note")
  }
  const [{ ref }] = await decided()
  const shell = { CODEX_THREAD_ID: "t" }
  await dex(place.home, ["note", "Agents disagree", "--rejects", ref], shell, place.at)
  expect((await decided())[0].superseded_by).toBeUndefined()
  const note = (await answer(place, "note", "Nothing of this holds", "--rejects", ref)).notes[0]
  expect(note.rejects).toBe(ref)
  expect((await decided())[0].superseded_by).toMatchObject({ quote: "Nothing of this holds" })
  const [warned] = await pushed(place, { event: "before_edit", file: "src/sessions.ts" })
  expect(warned?.kind === undefined || warned.kind === "warning").toBe(true)
  await answer(place, "forget", note.ref, "--yes")
  expect((await decided())[0].superseded_by).toBeUndefined()
})
