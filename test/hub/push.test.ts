import { join } from "node:path"
import { describe, expect, onTestFinished, test } from "vitest"
import type { Consent, HubChoices } from "../../src/config/hub.ts"
import { openHub } from "../../src/hub-client/client.ts"
import { createPlacePatterns } from "../../src/hub-client/for-others.ts"
import { type PushParts, pushAll } from "../../src/hub-client/push.ts"
import { REDACTION_VERSION } from "../../src/redact/version.ts"
import { openStore } from "../../src/store/history/sqlite-history.ts"
import { openPushed } from "../../src/store/hub/pushed.ts"
import { conversation, textMessage, unit } from "../support/conversations.ts"
import { type Mishap, standInHub, TOKEN } from "../support/stand-in-hub.ts"
import { tempDir } from "../support/temp.ts"

const KEY = "github.com/acme/api"
const AT = 1_760_000_000_000
const ref = (id: string) => ({ source: "claude_code", id })

const consent = (more: Partial<Consent> = {}): Consent => ({
  project: "/code/api",
  key: KEY,
  what: ["said", "called", "returned"],
  visibility: "project",
  at: 0,
  ...more,
})

/** A history, a hub and the user's choices; `push` as one process would do it. */
async function setUp(mishap?: (call: string) => Mishap) {
  const dir = tempDir()
  const store = openStore(join(dir, "history.db"))
  const hub = await standInHub(mishap)
  hub.consents.set(KEY, [])
  let choices: HubChoices = { consents: [consent()] }
  let clock = AT
  const pushed = openPushed(join(dir, "hub.db"))
  onTestFinished(() => {
    store.close()
    pushed.close()
  })
  const push = async (more: Partial<PushParts> = {}) => {
    const client = openHub({ address: hub.url, token: TOKEN, maxTries: 1 })
    try {
      return await pushAll({
        store,
        pushed,
        hub: client,
        account: "acme/alice",
        choices: () => choices,
        platform: "linux",
        now: () => clock,
        rulesFor: async (row, { what }) => ({
          what: what as never,
          folders: [row.project!],
          home: "/home/alice",
          platform: "linux",
          places: createPlacePatterns({ home: "/home/alice" }),
        }),
        allows: () => true,
        ...more,
      })
    } finally {
      client.close()
    }
  }
  const write = (id: string, texts: string[], more: Parameters<typeof conversation>[2] = {}) =>
    store.writeUnit(
      unit(
        id,
        [
          conversation(
            id,
            texts.map((text, i) => textMessage(`${id}-${i}`, text)),
            more,
          ),
        ],
        { mode: "replace" },
      ),
    )
  return {
    store,
    hub,
    pushed,
    push,
    write,
    agree: (next: HubChoices) => {
      choices = next
    },
    later: (ms: number) => {
      clock += ms
    },
  }
}

const textsOf = (hub: Awaited<ReturnType<typeof standInHub>>, id: string) =>
  hub.messagesOf(`claude_code:${id}`).map(({ parts }) => parts[0]!.text)

describe("a push", () => {
  test("sends what is shared, once, and later sends what was added to it", async () => {
    const { hub, push, write } = await setUp()
    await write("a", ["one", "two"])
    await write("b", ["three"])
    await write("c", ["of another project"], { project: "/code/other", cwds: ["/code/other"] })
    expect(await push()).toMatchObject({ sent: 2, refused: 0, complete: true })
    expect([...hub.stored.keys()]).toEqual(["claude_code:a", "claude_code:b"])
    expect(textsOf(hub, "a")).toEqual(["one", "two"])
    const before = hub.calls.length
    expect(await push()).toMatchObject({ sent: 0 })
    expect(hub.calls.length).toBe(before)
    await write("a", ["one", "two", "four"])
    expect(await push()).toMatchObject({ sent: 1 })
    expect(textsOf(hub, "a")).toEqual(["one", "two", "four"])
    expect(hub.stored.get("claude_code:a")!.rev).toBe(2)
    expect(hub.received()).not.toContain("of another project")
  })

  test("sends again what a folder that joined the project changes", async () => {
    const { store, hub, push, write } = await setUp()
    const effects = [{ type: "file" as const, path: "/old/api/src/a.ts", action: "edited" as const }]
    await store.writeUnit(unit("a", [conversation("a", [textMessage("a1", "one", { effects })])]))
    await write("b", ["two"])
    const rulesFor: PushParts["rulesFor"] = async (row, { what }) => ({
      ...{ what: what as never, home: "/home/alice", platform: "linux" },
      folders: await store.projectFolders(row.project!),
      places: createPlacePatterns({ home: "/home/alice" }),
    })
    const sentEffects = () => hub.messagesOf("claude_code:a")[0]!.effects
    expect(await push({ rulesFor })).toMatchObject({ sent: 2 })
    expect(sentEffects()).toEqual([])
    await store.joinProject("/old/api", "/code/api", "you joined them")
    expect(await push({ rulesFor })).toMatchObject({ sent: 1 })
    expect(sentEffects()).toMatchObject([{ path: "src/a.ts" }])
    expect(await push({ rulesFor })).toMatchObject({ sent: 0 })
  })

  test("sends only the last chunk of a long conversation that grew", async () => {
    const { hub, push, write } = await setUp()
    const long = Array.from({ length: 60 }, (_, i) => `${i} ${"word ".repeat(2_000)}`)
    await write("a", long)
    const first = await push()
    expect(first.chunks).toBeGreaterThan(3)
    await write("a", [...long, "and one more"])
    expect(await push()).toMatchObject({ sent: 1, chunks: 1 })
    expect(textsOf(hub, "a")).toEqual([...long, "and one more"])
  })

  test("sends nothing of a private project, regardless of consent, and all of it once it is no longer private", async () => {
    const { store, hub, push, write } = await setUp()
    await write("a", ["one"])
    await store.setPrivate("/code/api", true)
    expect(await push()).toMatchObject({ sent: 0 })
    expect(hub.calls).toEqual([])
    await store.setPrivate("/code/api", false)
    expect(await push()).toMatchObject({ sent: 1 })
  })

  test("sends no dex answers or documents, nothing older than agreed, and nothing that the project's file forbids", async () => {
    const { hub, push, write, agree } = await setUp()
    await write("a", ["one"], { kind: "dex" })
    await write("b", ["two"], { kind: "document" })
    await write("c", ["three"])
    agree({ consents: [consent({ since: AT + 1 })] })
    expect(await push()).toMatchObject({ sent: 0 })
    agree({ consents: [consent({ since: AT })] })
    expect(await push({ allows: () => false })).toMatchObject({ sent: 0 })
    expect(hub.calls).toEqual([])
    expect(await push()).toMatchObject({ sent: 1 })
    expect([...hub.stored.keys()]).toEqual(["claude_code:c"])
  })

  test("sends conversations on hold, their subagents and forks only once they are released", async () => {
    const { hub, push, pushed, write } = await setUp()
    pushed.hold([ref("a")], 1)
    await write("a", ["one"])
    await write("sub", ["two"], { kind: "subagent", parent: { id: "a" } })
    await write("subsub", ["three"], { kind: "subagent", parent: { id: "sub" } })
    await write("fork", ["four"], { fork_of: "a" })
    await write("other", ["five"])
    expect(await push()).toMatchObject({ sent: 1 })
    expect([...hub.stored.keys()]).toEqual(["claude_code:other"])
    expect(hub.received()).not.toMatch(/"(one|two|three|four)"/)
    pushed.release([ref("a")])
    expect(await push()).toMatchObject({ sent: 4 })
  })

  test("sends a conversation again when consent adds a part, and without the parts that it removes", async () => {
    const { hub, push, store, agree } = await setUp()
    const parts = [
      { type: "text" as const, text: "said", origin: "agent" as const },
      { type: "thinking" as const, text: "pondered", origin: "agent" as const },
    ]
    await store.writeUnit(unit("a", [conversation("a", [{ key: "k", role: "assistant", parts }])]))
    await push()
    expect(hub.received()).not.toContain("pondered")
    agree({ consents: [consent({ what: ["said", "thinking"] })] })
    expect(await push()).toMatchObject({ sent: 1 })
    expect(hub.messagesOf("claude_code:a")[0]!.parts).toHaveLength(2)
    agree({ consents: [consent({ what: ["said"] })] })
    expect(await push()).toMatchObject({ sent: 1 })
    expect(hub.messagesOf("claude_code:a")[0]!.parts).toHaveLength(1)
  })

  test("deletes on the hub what was forgotten here, and keeps nothing of it", async () => {
    const { hub, push, pushed, store, write } = await setUp()
    await write("a", ["one"])
    await write("b", ["two"])
    await push()
    await store.forget([ref("a")])
    expect(await push()).toMatchObject({ removed: 1 })
    expect([...hub.stored.keys()]).toEqual(["claude_code:b"])
    expect(pushed.get(ref("a"))).toBeUndefined()
    expect(await push()).toMatchObject({ removed: 0, sent: 0 })
  })

  test("does not send a conversation again that was deleted on the hub, even if it grows", async () => {
    const { hub, push, pushed, write } = await setUp()
    hub.gone.add("claude_code:a")
    await write("a", ["one"])
    expect(await push()).toMatchObject({ sent: 0 })
    expect(pushed.get(ref("a"))!.state).toBe("gone")
    const before = hub.calls.length
    await write("a", ["one", "two"])
    await push()
    expect(hub.calls.length).toBe(before)
  })

  test("a conversation in which the hub finds a secret waits for newer rules, and blocks no other", async () => {
    const body = { error: { code: "secret", message: "secret", rules: ["acme-token"] } }
    const { hub, push, pushed, write } = await setUp((call) =>
      call.includes("/claude_code/a/chunks/") ? { status: 422, body } : undefined,
    )
    await write("a", ["one"])
    await write("b", ["two"])
    expect(await push()).toMatchObject({ sent: 1, refused: 1 })
    expect(pushed.get(ref("a"))).toMatchObject({ state: "refused", rules: REDACTION_VERSION })
    expect(pushed.get(ref("a"))!.why).toContain("acme-token")
    hub.mishap = () => undefined
    await write("a", ["one", "three"])
    expect(await push({ retriesRefused: true })).toMatchObject({ sent: 0, refused: 0 })
    pushed.put({ ...pushed.get(ref("a"))!, rules: REDACTION_VERSION - 1 })
    expect(await push()).toMatchObject({ sent: 1 })
  })

  test("tries a refused conversation again when a person asks, and automatically after a while", async () => {
    const { hub, push, pushed, write, later } = await setUp()
    hub.consents.clear()
    await write("a", ["one"])
    expect(await push()).toMatchObject({ refused: 1 })
    expect(pushed.get(ref("a"))).toMatchObject({ state: "refused", why: expect.stringContaining("not agreed") })
    hub.consents.set(KEY, [])
    expect(await push()).toMatchObject({ sent: 0, refused: 0 })
    later(3_700_000)
    expect(await push()).toMatchObject({ sent: 1 })
  })

  test("if another device was faster, it plans again", async () => {
    const { hub, push, write } = await setUp()
    await write("a", ["one"])
    await push()
    await write("a", ["one", "two"])
    hub.mishap = (call) => {
      if (call !== "POST /v1/push/commit") return undefined
      hub.mishap = () => undefined
      const has = hub.stored.get("claude_code:a")!
      hub.stored.set("claude_code:a", { ...has, rev: has.rev + 1, digest: "another" })
      return undefined
    }
    expect(await push()).toMatchObject({ sent: 1, refused: 0 })
    expect(hub.stored.get("claude_code:a")!.rev).toBe(3)
    expect(textsOf(hub, "a")).toEqual(["one", "two"])
  })

  test("stops sending a project that is unshared during the push", async () => {
    const { hub, push, write, agree } = await setUp()
    for (let i = 0; i < 20; i++) await write(`c${i}`, [`text ${i}`])
    hub.mishap = (call) => {
      if (call === "POST /v1/push/commit") agree({ consents: [] })
      return undefined
    }
    await push()
    expect(hub.stored.size).toBeLessThanOrEqual(4)
  })

  test("stops sending conversations that become private or are forgotten during the push", async () => {
    for (const change of ["private", "forgotten"]) {
      const { hub, push, write, store } = await setUp()
      for (let i = 0; i < 20; i++) await write(`c${i}`, [`text ${i}`])
      const all = Array.from({ length: 20 }, (_, i) => ref(`c${i}`))
      const stop = () => (change === "private" ? store.setPrivate("/code/api", true) : store.forget(all))
      let done: Promise<unknown> | undefined
      hub.mishap = (call) => {
        if (call === "POST /v1/push/commit") done ??= stop()
        return undefined
      }
      await push()
      await done
      expect(hub.stored.size).toBeLessThanOrEqual(8)
      if (change === "private") continue
      await push()
      expect(hub.stored.size).toBe(0)
    }
  })

  test("acknowledgements of another hub do not count", async () => {
    const { hub, push, write } = await setUp()
    await write("a", ["one"])
    await push()
    hub.stored.clear()
    expect(await push()).toMatchObject({ sent: 0 })
    expect(await push({ account: "acme/bob" })).toMatchObject({ sent: 1 })
  })

  test("it stops at its deadline, and the next one continues", async () => {
    const { hub, push, write, later } = await setUp()
    for (let i = 0; i < 5; i++) await write(`c${i}`, [`text ${i}`])
    let looked = 0
    const first = await push({ deadline: AT + 3, now: () => AT + looked++ })
    expect(first.complete).toBe(false)
    expect(hub.stored.size).toBeLessThan(5)
    later(1)
    expect(await push()).toMatchObject({ complete: true })
    expect(hub.stored.size).toBe(5)
    expect(hub.commits).toBe(5)
  })

  test("despite any failures on the way, in the end nothing is missing and nothing is there twice", async () => {
    let n = 0
    const kinds: Mishap[] = ["lost", "cut", { status: 503, headers: { "retry-after": "0" } }, { status: 429 }]
    // 7 of 16 calls fail, in an order that does not repeat within the calls of one push.
    const mishap = (): Mishap => {
      n = (Math.imul(n, 1_103_515_245) + 12_345) & 0x7fffffff
      return ((n >> 8) & 15) < 7 ? kinds[(n >> 16) & 3] : undefined
    }
    const { hub, push, write } = await setUp(mishap)
    const want = new Map<string, string[]>()
    let broken = 0
    for (let round = 0; round < 60; round++) {
      const id = `c${round % 17}`
      want.set(id, [...(want.get(id) ?? []), `round ${round}`])
      await write(id, want.get(id)!)
      await push({ retriesRefused: true }).catch(() => broken++)
    }
    hub.mishap = () => undefined
    await push({ retriesRefused: true })
    expect(broken).toBeGreaterThan(20)
    for (const [id, texts] of want) expect(textsOf(hub, id)).toEqual(texts)
    expect(hub.stored.size).toBe(want.size)
    const revs = [...hub.stored.values()].reduce((sum, { rev }) => sum + rev, 0)
    expect(hub.commits).toBe(revs)
    expect(revs).toBeLessThanOrEqual(60)
  })

  test("a replaced history is read from its beginning, and nothing is deleted on the hub because of it", async () => {
    const { hub, pushed, push, write } = await setUp()
    await write("a", ["one"])
    await push()
    const other = openStore(join(tempDir(), "history.db"))
    onTestFinished(() => other.close())
    await other.writeUnit(unit("x", [conversation("x", [textMessage("x", "new")])]))
    await other.writeUnit(unit("y", [conversation("y", [textMessage("y", "new")])]))
    await other.forget([ref("x")])
    expect(await push({ store: other })).toMatchObject({ sent: 1, removed: 0 })
    expect([...hub.stored.keys()]).toEqual(["claude_code:a", "claude_code:y"])
    expect(pushed.get(ref("a"))!.state).toBe("sent")
  })
})
