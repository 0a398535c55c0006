import { describe, expect, test } from "vitest"
import { hiddenWords, pairsOfCharacters, splitIdentifier } from "../../src/core/words.ts"
import { parseQuery } from "../../src/search/query.ts"

const terms = (...words: string[]) => words.map((one) => ({ words: one }))

describe("a typed query", () => {
  test("searches for words, and for stopwords only if there is nothing else", () => {
    expect(parseQuery("where did we fix the flaky hook").terms).toEqual(terms("fix", "flaky", "hook"))
    expect(parseQuery("what is it").terms).toEqual(terms("what", "is", "it"))
  })

  test("requires a quoted phrase literally", () => {
    expect(parseQuery('"shadow branch" migration')).toMatchObject({
      required: terms("shadow branch"),
      terms: terms("shadow branch", "shadow", "branch", "migration"),
    })
    expect(parseQuery('an "open end').required).toEqual(terms("open end"))
  })

  test("excludes -word, but not a command's flags", () => {
    expect(parseQuery("mutex -deadlock")).toMatchObject({
      terms: terms("mutex"),
      excluded: terms("deadlock"),
      without: ["deadlock"],
    })
    expect(parseQuery('mutex -"dead lock"').excluded).toEqual(terms("dead lock"))
    expect(parseQuery("go test -race --count 1").excluded).toEqual([])
    expect(parseQuery("what does -count=1 do").excluded).toEqual([])
    expect(parseQuery("ls -l").excluded).toEqual([])
  })

  test("accepts filters as in flags, and treats everything else as words", () => {
    expect(
      parseQuery('race project:api source:codex file:src/a.ts tool:Bash role:user from:7d to:"2026-11-03"').filters,
    ).toEqual({
      project: "api",
      source: "codex",
      file: "src/a.ts",
      tool: "Bash",
      role: "user",
      from: "7d",
      to: "2026-11-03",
    })
    const refused = parseQuery("from:nowhere error:timeout", (name) => name !== "from")
    expect(refused.filters).toEqual({})
    expect(refused.words).toEqual(["nowhere", "error", "timeout"])
    expect(parseQuery('project:"my app" x').filters).toEqual({ project: "my app" })
  })

  test("searches for paths, flags, versions and snake_case as a phrase and in their parts", () => {
    expect(parseQuery("strategy/common.go").terms).toEqual(terms("strategy common go", "strategy", "common", "go"))
    expect(parseQuery("--local-dev").terms).toEqual(terms("local dev", "local", "dev"))
    expect(parseQuery("go_1.25.6").terms[0]).toEqual({ words: "go 1 25 6" })
  })

  test("searches for camelCase as it is, as words, and in its parts", () => {
    expect(parseQuery("HasUncommittedChanges").terms).toEqual(
      terms("hasuncommittedchanges", "has uncommitted changes", "uncommitted", "changes"),
    )
  })

  test("finds a hash by its beginning", () => {
    expect(parseQuery("83c840a").terms).toEqual([{ words: "83c840a", prefix: true }])
    expect(parseQuery("defaced").terms).toEqual(terms("defaced"))
  })

  test("searches for CJK text in pairs of characters", () => {
    expect(parseQuery("認証エラー").terms).toContainEqual({ words: "認証 証エ エラ ラー" })
  })

  test("makes pairs of adjacent words", () => {
    expect(parseQuery("refresh token race").pairs).toEqual(terms("refresh token", "token race"))
  })

  test("cuts a pasted log, and finds nothing in punctuation", () => {
    expect(parseQuery("word ".repeat(50_000)).terms).toEqual(terms("word"))
    expect(parseQuery(Array.from({ length: 500 }, (_, i) => `w${i}x`).join(" ")).terms).toHaveLength(40)
    expect(parseQuery('"" -- ?! ()').terms).toEqual([])
  })
})

describe("words that no tokenizer sees", () => {
  test("identifiers are split where their case changes", () => {
    expect(splitIdentifier("readFileSync")).toBe("read File Sync")
    expect(splitIdentifier("HTTPServerError")).toBe("HTTP Server Error")
    expect(splitIdentifier("plain")).toBeUndefined()
    expect(splitIdentifier(`a${"Bc".repeat(60)}`)).toBeUndefined()
  })

  test.each(["x", "X", "x9", "xX", "X9", "東"])(
    "a text that is one long word of %s takes no longer than its length",
    (word) => {
      expect(hiddenWords(word.repeat(500_000)).split("\n").length).toBe(1) // in quadratic time: hours
    },
  )

  test("each is listed once", () => {
    expect(hiddenWords("readFile readFile parseJSON x")).toBe("read File\nparse JSON")
    expect(hiddenWords("設定を読む")).toBe("設定 定を を読 読む")
    expect(hiddenWords("9readFile aBCd XMLHttp v2Beta ab1C aB")).toBe("read File\nB Cd\nXML Http\nv2 Beta\nab1 C")
    expect(pairsOfCharacters("字")).toBe("字")
  })
})
