import { describe, expect, test } from "vitest"
import type { HistoryReader, HistoryWriter } from "../../src/store/history/store.ts"
import { conversation, textMessage, unit } from "../support/conversations.ts"
import type { HistoryFiller } from "../support/memory-history.ts"

// The contract of a history. Every implementation passes the reading half. The writing half is for those that also merge and keep
// the content of agents' files.

const ref = (id: string) => ({ source: "claude_code" as const, id })
const texts = async (store: HistoryReader, id: string) =>
  (await store.messages(ref(id))).map((message) => message.parts[0]!.text)

export function describeReading(name: string, open: () => Promise<HistoryReader & HistoryFiller>): void {
  describe(`reading a history: ${name}`, () => {
    test("returns what was written, in order, numbered from 1", async () => {
      const store = await open()
      await store.writeUnit(
        unit("a", [conversation("a", [textMessage("k1", "one"), textMessage("k2", "two", { role: "assistant" })])]),
      )
      const messages = await store.messages(ref("a"))
      expect(messages.map(({ number, role, parts }) => [number, role, parts[0]!.text])).toEqual([
        [1, "user", "one"],
        [2, "assistant", "two"],
      ])
      expect(await store.conversation(ref("a"))).toMatchObject({
        message_count: 2,
        project: "/code/api",
        kind: "person",
        archived: false,
      })
    })

    test("reads selected messages of a long conversation", async () => {
      const store = await open()
      const messages = Array.from({ length: 500 }, (_, i) =>
        textMessage(`k${i}`, `message ${i} ${"word ".repeat(200)}`),
      )
      await store.writeUnit(unit("a", [conversation("a", messages)]))
      const chosen = await store.messages(ref("a"), [3, 499])
      expect(chosen.map(({ number, parts }) => [number, parts[0]!.text.slice(0, 11)])).toEqual([
        [3, "message 2 w"],
        [499, "message 498"],
      ])
    })

    test.each([
      ["the original first", ["old", "fork"]],
      ["the fork first", ["fork", "old"]],
    ])("finds copied messages in a fork and counts them once, %s", async (_, order) => {
      const store = await open()
      const usage = { input: 10, output: 1, cache_read: 0, cache_write: 0 }
      const two = textMessage("k2", "two", { role: "assistant", usage })
      const ten = textMessage("k10", "ten", { role: "assistant", usage })
      const writes = {
        old: unit("old", [conversation("old", [textMessage("k1", "one"), two, textMessage("k3", "three")])], {
          bornAt: 1000,
        }),
        fork: unit("fork", [conversation("fork", [textMessage("k1", "one"), two, textMessage("k9", "nine"), ten])], {
          bornAt: 2000,
        }),
      }
      for (const key of order) await store.writeUnit(writes[key as "old" | "fork"])
      expect((await store.messages(ref("old"))).map(({ copied }) => copied)).toEqual([false, false, false])
      expect((await store.messages(ref("fork"))).map(({ copied }) => copied)).toEqual([true, true, false, false])
      expect(await store.conversation(ref("fork"))).toMatchObject({ fork_of: "old", copied_count: 2, usage })
      expect((await store.conversation(ref("old")))?.usage).toEqual(usage)
      expect((await store.conversation(ref("old")))?.fork_of).toBeUndefined()
      expect((await store.stats()).messages).toBe(5)
    })

    test("returns the files, commands and commits of a conversation", async () => {
      const store = await open()
      await store.writeUnit(
        unit("a", [
          conversation("a", [
            textMessage("k1", "one", {
              effects: [
                { type: "file", path: "/code/api/src/read.ts", action: "read" },
                { type: "file", path: "/code/api/src/auth.ts", action: "edited", added: 3, removed: 1 },
                { type: "file", path: "/elsewhere/x.ts", action: "read" },
                { type: "command", command: "npm test", exit_status: 1, failed: true, error: "1 failed" },
                { type: "commit", hash: "1a2b3c4", subject: "auth: fix", branch: "main" },
                { type: "pull_request", url: "https://example.test/pull/1" },
              ],
            }),
          ]),
        ]),
      )
      expect(await store.filesOf(ref("a"))).toEqual(["src/auth.ts", "src/read.ts", "/elsewhere/x.ts"])
      expect(await store.commandsOf(ref("a"))).toEqual([
        { number: 1, command: "npm test", exit_status: 1, failed: true, error: "1 failed" },
      ])
      expect((await store.madeIn(ref("a"))).map(({ kind, name }) => [kind, name])).toEqual([
        ["commit", "1a2b3c4"],
        ["pull_request", "https://example.test/pull/1"],
      ])
      expect(await store.touching("src/auth.ts")).toEqual([ref("a")])
      expect(await store.touching("/code/api/src/auth")).toEqual([ref("a")])
      expect(await store.touching("nowhere.ts")).toEqual([])
    })

    test("counts the work of each conversation once: neither a fork's copies nor superseded messages", async () => {
      const store = await open()
      const edit = (path: string, added: number, removed: number) =>
        ({ type: "file", path: `/code/api/${path}`, action: "edited", added, removed }) as const
      const commit = (hash: string) => ({ type: "commit", hash, subject: "x" }) as const
      const shared = textMessage("k1", "one", { effects: [edit("a.ts", 5, 1), edit("b.ts", 2, 0), commit("1a2b3c4")] })
      await store.writeUnit(
        unit(
          "a",
          [
            conversation("a", [
              shared,
              textMessage("k2", "two", { effects: [edit("a.ts", 1, 1), commit("1a2b3c4"), commit("5d6e7f8")] }),
              textMessage("k3", "gone", { superseded: true, effects: [edit("z.ts", 100, 100)] }),
              textMessage("k4", "only read", { effects: [{ type: "file", path: "/code/api/c.ts", action: "read" }] }),
            ]),
          ],
          { bornAt: 1 },
        ),
      )
      await store.writeUnit(unit("f", [conversation("f", [shared, textMessage("f2", "own")])], { bornAt: 2 }))
      expect(await store.work([ref("f"), ref("a"), ref("nowhere")])).toEqual([
        { lines_added: 0, lines_removed: 0, files: 0, commits: 0 },
        { lines_added: 8, lines_removed: 2, files: 2, commits: 2 },
        { lines_added: 0, lines_removed: 0, files: 0, commits: 0 },
      ])
    })

    test("lists the newest commits first, without a fork's copies, superseded ones and other projects' private ones", async () => {
      const store = await open()
      const commit = (hash: string, at: number, more: object = {}) =>
        textMessage(hash, "committed", {
          at,
          effects: [{ type: "commit", hash, subject: `subject of ${hash}` }],
          ...more,
        })
      const shared = commit("1a2b3c4", 1000)
      await store.writeUnit(
        unit(
          "a",
          [conversation("a", [shared, commit("5d6e7f8", 3000), commit("9999999", 9000, { superseded: true })])],
          {
            bornAt: 1,
          },
        ),
      )
      await store.writeUnit(unit("f", [conversation("f", [shared, commit("abcdef0", 2000)])], { bornAt: 2 }))
      const secret = { project: "/code/secret", cwds: ["/code/secret"] }
      await store.writeUnit(unit("s", [conversation("s", [commit("0011223", 4000)], secret)], { bornAt: 3 }))
      await store.setPrivate("/code/secret", true)
      expect(await store.commits({ limit: 10 })).toEqual([
        { ref: { ...ref("a"), number: 2 }, hash: "5d6e7f8", subject: "subject of 5d6e7f8", at: 3000 },
        { ref: { ...ref("f"), number: 2 }, hash: "abcdef0", subject: "subject of abcdef0", at: 2000 },
        { ref: { ...ref("a"), number: 1 }, hash: "1a2b3c4", subject: "subject of 1a2b3c4", at: 1000 },
      ])
      expect((await store.commits({ limit: 2, inside: "/code/secret" })).map(({ hash }) => hash)).toEqual([
        "0011223",
        "5d6e7f8",
      ])
    })

    test("returns the messages of a project around one message, in order of time", async () => {
      const store = await open()
      const at = (id: string, times: number[], more: object = {}) =>
        unit(id, [
          conversation(
            id,
            times.map((time, i) => textMessage(`${id}${i}`, `${time}`, { at: time })),
            more,
          ),
        ])
      await store.writeUnit(at("long", [10, 50, 60, 100]))
      await store.writeUnit(at("early", [20, 30]))
      await store.writeUnit(at("late", [55, 70, 80]))
      await store.writeUnit(at("after", [200]))
      await store.writeUnit(at("elsewhere", [51, 59, 61], { project: "/code/web" }))
      const around = async (number: number, before: number, after: number) =>
        (await store.around({ ...ref("long"), number }, before, after)).map(({ id, number }) => `${id}#${number}`)
      expect(await around(3, 3, 2)).toEqual(["early#2", "long#2", "late#1", "long#3", "late#2", "late#3"])
      expect(await around(3, 100, 100)).toEqual([
        "long#1",
        "early#1",
        "early#2",
        "long#2",
        "late#1",
        "long#3",
        "late#2",
        "late#3",
        "long#4",
        "after#1",
      ])
      expect(await around(1, 5, 0)).toEqual(["long#1"])
      expect(await around(99, 5, 5)).toEqual([])
    })

    test("its revision is the token of the newest change", async () => {
      const store = await open()
      const empty = await store.revision()
      await store.writeUnit(unit("a", [conversation("a", [textMessage("k1", "one")])]))
      const written = await store.revision()
      expect(written).not.toBe(empty)
      expect(written).toBe((await store.changes(undefined, 100)).token)
      await store.writeUnit(unit("a", [conversation("a", [textMessage("k1", "one")])]))
      expect(await store.revision()).toBe(written)
      await store.forget([ref("a")])
      expect(await store.revision()).toBe((await store.changes(written, 100)).token)
    })

    test("feeds every change once, including deletions, and asks for a rebuild if it does not know the token", async () => {
      const store = await open()
      await store.writeUnit(unit("a", [conversation("a", [textMessage("k1", "one")])]))
      const first = await store.changes(undefined, 100)
      expect(first.changes.map((change) => change.ref)).toEqual([ref("a")])
      expect((await store.changes(first.token, 100)).changes).toEqual([])
      await store.writeUnit(unit("b", [conversation("b", [textMessage("b1", "one")])]))
      await store.forget([ref("a")])
      const later = await store.changes(first.token, 100)
      expect(later.changes.map(({ deleted }) => deleted)).toEqual([false, true])
      expect((await store.changes("another-history@3", 100)).rebuild).toBe(true)
      expect((await store.changes(`${await store.id()}@999999`, 100)).rebuild).toBe(true)
    })

    test("pages through the feed without losing a change", async () => {
      const store = await open()
      for (let i = 0; i < 25; i++)
        await store.writeUnit(unit(`u${i}`, [conversation(`c${i}`, [textMessage(`k${i}`, "one")])]))
      const seen: string[] = []
      for (let token: string | undefined; ; ) {
        const page = await store.changes(token, 10)
        seen.push(...page.changes.map((change) => change.ref!.id))
        token = page.token
        if (!page.more) break
      }
      expect(seen).toEqual(Array.from({ length: 25 }, (_, i) => `c${i}`))
    })

    test("returns subagents and forks as the family of a conversation to forget", async () => {
      const store = await open()
      await store.writeUnit(
        unit(
          "a",
          [
            conversation("a", [textMessage("k1", "one")]),
            conversation("s", [textMessage("s1", "sub")], { kind: "subagent", parent: { id: "a" } }),
          ],
          { bornAt: 1 },
        ),
      )
      await store.writeUnit(
        unit("f", [conversation("f", [textMessage("k1", "one"), textMessage("f2", "own")])], { bornAt: 2 }),
      )
      const family = await store.family([ref("a")])
      expect(family.map(({ id }) => id).sort()).toEqual(["a", "f", "s"])
      expect((await store.withSubagents([ref("a")])).map(({ id }) => id).sort()).toEqual(["a", "s"])
      expect((await store.withSubagents([ref("f")])).map(({ id }) => id)).toEqual(["f"])
    })

    test("lists newest first, applies filters in the query, and counts what it leaves out", async () => {
      const store = await open()
      const day = 86_400_000
      for (let i = 1; i <= 5; i++) {
        const kind = i === 4 ? "automation" : "person"
        await store.writeUnit(
          unit(`u${i}`, [
            conversation(`c${i}`, [textMessage(`k${i}`, "one", { at: i * day })], {
              kind,
              project: i % 2 ? "/code/api" : "/code/web",
            }),
          ]),
        )
      }
      const listed = async (filter: object) =>
        (await store.list({ limit: 10, offset: 0, ...filter })).rows.map((row) => row.ref.id)
      expect(await listed({})).toEqual(["c5", "c4", "c3", "c2", "c1"])
      expect(await listed({ kinds: ["person"] })).toEqual(["c5", "c3", "c2", "c1"])
      expect((await store.list({ limit: 10, offset: 0, kinds: ["person"] })).left_out).toEqual({ automation: 1 })
      expect(await listed({ project: "API" })).toEqual(["c5", "c3", "c1"])
      expect(await listed({ from: 2 * day, to: 4 * day })).toEqual(["c4", "c3", "c2"])
      expect((await store.list({ limit: 2, offset: 1 })).rows.map((row) => row.ref.id)).toEqual(["c4", "c3"])
      expect((await store.list({ limit: 2, offset: 1 })).total).toBe(5)
      expect(await listed({ in_project: "/code/api" })).toEqual(["c5", "c3", "c1"])
      expect(await listed({ in_project: "/code/ap" })).toEqual([])
      await store.writeUnit(
        unit("s", [conversation("sub", [textMessage("s1", "one")], { kind: "subagent", parent: { id: "c2" } })]),
      )
      expect((await listed({ conversation: ref("c2") })).sort()).toEqual(["c2", "sub"])
    })

    test("shows a private project's conversations only to those who ask from inside it", async () => {
      const store = await open()
      await store.writeUnit(unit("a", [conversation("a", [textMessage("k1", "one")])]))
      expect(await store.setPrivate("/code/api", true)).toBe(true)
      expect((await store.list({ limit: 10, offset: 0 })).rows).toEqual([])
      expect(await store.spans({})).toEqual([])
      expect((await store.list({ limit: 10, offset: 0, inside: "/code/api" })).rows.length).toBe(1)
      expect((await store.spans({ inside: "/code/api" })).map(({ project }) => project)).toEqual(["/code/api"])
      expect(await store.setPrivate("/code/new", true)).toBe(true)
      await store.writeUnit(unit("b", [conversation("b", [textMessage("k2", "two")], { project: "/code/new" })]))
      expect((await store.list({ limit: 10, offset: 0 })).rows).toEqual([])
      expect(await store.setPrivate("/no/such", false)).toBe(false)
    })

    test("finds a conversation by a unique prefix, and all candidates of an ambiguous one", async () => {
      const store = await open()
      await store.writeUnit(
        unit("a", [
          conversation("abc-1", [textMessage("k1", "x")]),
          conversation("abd-2", [textMessage("k2", "x")]),
          conversation("ab", [textMessage("k3", "x")]),
        ]),
      )
      const found = async (prefix: string) => (await store.resolve({ prefix })).map((row) => row.ref.id)
      expect(await found("abc")).toEqual(["abc-1"])
      expect(await found("abd-2")).toEqual(["abd-2"])
      expect((await found("a")).sort()).toEqual(["ab", "abc-1", "abd-2"])
      expect(await found("ab")).toEqual(["ab"])
      expect(await found("%")).toEqual([])
      expect(await store.resolve({ prefix: "abc", source: "codex" })).toEqual([])
    })

    test("stores any text unchanged: quotes, NULs, lone surrogates, other scripts", async () => {
      const store = await open()
      const hard = [
        "it's; drop table message --",
        "null\u0000inside",
        "日本語 עברית 🎉",
        '{"json":"text"}',
        "line\nline",
      ]
      await store.writeUnit(
        unit("a'b", [
          conversation(
            "c'%_",
            hard.map((text, i) => textMessage(`k'${i}`, text)),
          ),
        ]),
      )
      expect(await texts(store, "c'%_")).toEqual(hard)
    })
  })
}

export function describeWriting(name: string, open: () => Promise<HistoryWriter>): void {
  describe(`writing a history: ${name}`, () => {
    test("writing the same unit twice changes nothing", async () => {
      const store = await open()
      const write = unit("a", [
        conversation("a", [
          textMessage("k1", "one", { effects: [{ type: "file", path: "/code/api/a.ts", action: "edited" }] }),
        ]),
      ])
      await store.writeUnit(write)
      const before = await store.changes(undefined, 100)
      const result = await store.writeUnit(write)
      expect(result).toEqual({ changed: 0, added_messages: 0, forgotten: 0, fresh: [], paid: [], unitsToRead: [] })
      expect(await store.changes(undefined, 100)).toEqual(before)
    })

    test("never changes a message's number; messages found later are numbered after the last and shown in their place", async () => {
      const store = await open()
      await store.writeUnit(unit("a", [conversation("a", [textMessage("k1", "one"), textMessage("k3", "three")])]))
      await store.writeUnit(
        unit("a", [
          conversation("a", [textMessage("k1", "one"), textMessage("k2", "two"), textMessage("k3", "three")]),
        ]),
      )
      const messages = await store.messages(ref("a"))
      expect(messages.map(({ number, parts }) => [number, parts[0]!.text])).toEqual([
        [1, "one"],
        [3, "two"],
        [2, "three"],
      ])
    })

    test("never reuses the number of a deleted message", async () => {
      const store = await open()
      await store.writeUnit(unit("a", [conversation("a", [textMessage("k1", "one"), textMessage("k2", "two")])]))
      await store.writeUnit(unit("a", [conversation("a", [textMessage("k1", "one")])]))
      await store.writeUnit(unit("a", [conversation("a", [textMessage("k1", "one"), textMessage("k3", "three")])]))
      expect((await store.messages(ref("a"))).map(({ number }) => number)).toEqual([1, 3])
    })

    test("rewrites a message in place when its parts grow, as in a streamed answer", async () => {
      const store = await open()
      const long = "x".repeat(50_000)
      await store.writeUnit(
        unit("a", [conversation("a", [textMessage("k1", "one"), textMessage("k2", "tw"), textMessage("k3", long)])]),
      )
      const seen = await store.versions(ref("a"))
      await store.writeUnit(
        unit("a", [
          conversation("a", [textMessage("k1", "one"), textMessage("k2", "two, whole"), textMessage("k3", long)]),
        ]),
      )
      expect(await texts(store, "a")).toEqual(["one", "two, whole", long])
      const now = await store.versions(ref("a"))
      expect(now.filter((message, i) => message.version !== seen[i]!.version).map(({ number }) => number)).toEqual([2])
    })

    test("returns new and changed messages as they would be read back", async () => {
      const store = await open()
      const first = await store.writeUnit(
        unit("a", [conversation("a", [textMessage("k1", "one"), textMessage("k2", "two")])]),
      )
      expect(first.fresh).toEqual([{ ref: ref("a"), messages: await store.messages(ref("a")) }])
      const second = await store.writeUnit(
        unit("a", [
          conversation("a", [textMessage("k1", "one"), textMessage("k2", "two, whole"), textMessage("k3", "three")]),
        ]),
      )
      expect(second.fresh[0]!.messages.map(({ number }) => number).sort()).toEqual([2, 3])
    })

    test("keeps a message that a rewritten source no longer contains, and marks it superseded", async () => {
      const store = await open()
      await store.writeUnit(unit("a", [conversation("a", [textMessage("k1", "one"), textMessage("k2", "two")])]))
      await store.writeUnit(
        unit("a", [conversation("a", [textMessage("k1", "one"), textMessage("k2", "two", { superseded: true })])]),
      )
      expect((await store.messages(ref("a"))).map(({ superseded }) => superseded)).toEqual([false, true])
      expect((await store.conversation(ref("a")))?.message_count).toBe(1)
    })

    describe("two units of the same authority contain one conversation", () => {
      const at = (minute: number) => ({ at: 1_760_000_000_000 + minute * 60_000 })
      const one = unit("one", [
        conversation("a", [textMessage("k1", "first", at(1)), textMessage("k3", "third, wh", at(3))], {
          git_branch: "one",
        }),
      ])
      const two = unit("two", [
        conversation("a", [textMessage("k2", "second", at(2)), textMessage("k3", "third, whole", at(3))], {
          git_branch: "two",
        }),
      ])

      test.each([
        ["in one order", [one, two]],
        ["in the other", [two, one]],
      ])(
        "it is the union of both, each message once and complete, named by the one that contains its beginning, %s",
        async (_, order) => {
          const store = await open()
          for (const write of order) await store.writeUnit(write)
          expect(await texts(store, "a")).toEqual(["first", "second", "third, whole"])
          expect(await store.conversation(ref("a"))).toMatchObject({ git_branch: "one", message_count: 3 })
          const before = await store.changes(undefined, 100)
          for (const write of [one, two, one]) expect((await store.writeUnit(write)).changed).toBe(0)
          expect(await store.changes(undefined, 100)).toEqual(before)
        },
      )

      test("a message that one of them no longer contains stays as superseded, since the other may contain it", async () => {
        const store = await open()
        for (const write of [one, two]) await store.writeUnit(write)
        await store.writeUnit(unit("one", [conversation("a", [textMessage("k4", "fourth", at(4))])]))
        const messages = await store.messages(ref("a"))
        expect(messages.map(({ parts, superseded }) => [parts[0]!.text, superseded])).toEqual([
          ["first", true],
          ["second", false],
          ["third, whole", false],
          ["fourth", false],
        ])
      })

      test("when the unit that names it is gone, the other one inherits it", async () => {
        const store = await open()
        for (const write of [one, two]) await store.writeUnit(write)
        expect(await store.archiveUnits("claude_code", ["one"])).toEqual({ archived: 1, heirs: ["two"] })
        await store.writeUnit(two)
        expect(await store.conversation(ref("a"))).toMatchObject({ git_branch: "two", archived: false })
        expect(await texts(store, "a")).toEqual(["first", "second", "third, whole"])
      })
    })

    test("a conversation that a unit no longer contains is kept, unless a better parser shows that there never was one", async () => {
      const store = await open()
      const both = [conversation("a", [textMessage("k1", "one")]), conversation("b", [textMessage("k2", "two")])]
      await store.writeUnit(unit("u", both))
      await store.writeUnit(unit("u", [both[0]!]))
      expect(await texts(store, "b")).toEqual(["two"])
      await store.writeUnit(unit("u", [both[0]!], { dropsUntold: true }))
      expect(await texts(store, "b")).toEqual([])
    })

    test("a unit whose earlier records are not available removes nothing", async () => {
      const store = await open()
      const later = { at: 1_760_000_060_000 }
      await store.writeUnit(unit("u", [conversation("a", [textMessage("k1", "one"), textMessage("k2", "two")])]))
      await store.writeUnit(unit("u", [conversation("a", [textMessage("k3", "three", later)])], { tellsAll: false }))
      const messages = await store.messages(ref("a"))
      expect(messages.map(({ parts, superseded }) => [parts[0]!.text, superseded])).toEqual([
        ["one", true],
        ["two", true],
        ["three", false],
      ])
    })

    test.each([
      ["the better teller first", ["file", "inline"]],
      ["the better teller last", ["inline", "file"]],
    ])("keeps the version of the higher authority if two units contain one conversation, %s", async (_, order) => {
      const store = await open()
      const writes = {
        file: unit("file", [
          conversation("sub", [textMessage("u1", "whole"), textMessage("u2", "more")], { authority: 10 }),
        ]),
        inline: unit("inline", [
          conversation("sub", [textMessage("u1", "part")], { authority: 5 }),
          conversation("main", [textMessage("m1", "main")]),
        ]),
      }
      for (const key of order) await store.writeUnit(writes[key as "file" | "inline"])
      await store.writeUnit(writes.inline)
      expect(await texts(store, "sub")).toEqual(["whole", "more"])
      expect((await store.stats()).conversations).toBe(2)
    })

    test("keeps raw records: appended, replaced, and those that a rewrite removed", async () => {
      const store = await open()
      const conversations = [conversation("a", [textMessage("k1", "one")])]
      await store.writeUnit(unit("a", conversations, { raw: ['{"r":1}', '{"r":2}'] }))
      await store.writeUnit(unit("a", conversations, { raw: ['{"r":3}'] }))
      expect(await store.rawLines("claude_code", "a", "live")).toEqual(['{"r":1}', '{"r":2}', '{"r":3}'])
      await store.writeUnit(unit("a", conversations, { mode: "replace", raw: ['{"r":9}'], left: ['{"r":1}'] }))
      expect(await store.rawLines("claude_code", "a", "live")).toEqual(['{"r":9}'])
      expect(await store.rawLines("claude_code", "a", "left")).toEqual(['{"r":1}'])
    })

    test("archives what the source no longer has, keeps it, and restores it when it returns", async () => {
      const store = await open()
      const write = unit("a", [conversation("a", [textMessage("k1", "one")])])
      await store.writeUnit(write)
      expect(await store.archiveUnits("claude_code", ["a"])).toEqual({ archived: 1, heirs: [] })
      expect(await store.archiveUnits("claude_code", ["a"])).toEqual({ archived: 0, heirs: [] })
      expect(await store.conversation(ref("a"))).toMatchObject({ archived: true, message_count: 1 })
      expect(await store.keptOnlyHere()).toEqual([ref("a")])
      await store.writeUnit(write)
      expect(await store.conversation(ref("a"))).toMatchObject({ archived: false })
      expect(await store.keptOnlyHere()).toEqual([])
    })

    test("forgets permanently: not listed, no raw records, not written again", async () => {
      const store = await open()
      const write = unit(
        "a",
        [conversation("a", [textMessage("k1", "one")]), conversation("b", [textMessage("b1", "other")])],
        {
          raw: ['{"r":1}'],
        },
      )
      await store.writeUnit(write)
      expect(await store.forget([ref("a")])).toBe(1)
      expect(await store.conversation(ref("a"))).toBeUndefined()
      expect(await store.messages(ref("a"))).toEqual([])
      expect(await store.rawLines("claude_code", "a", "live")).toEqual([])
      expect(await store.writeUnit(write)).toMatchObject({ forgotten: 1 })
      expect(await store.conversation(ref("a"))).toBeUndefined()
      expect(await store.rawLines("claude_code", "a", "live")).toEqual([])
      expect(await texts(store, "b")).toEqual(["other"])
    })

    test("is undamaged after all that", async () => {
      const store = await open()
      await store.writeUnit(unit("a", [conversation("a", [textMessage("k1", "one")])]))
      expect(await store.check()).toEqual([])
    })
  })
}
