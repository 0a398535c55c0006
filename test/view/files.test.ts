import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { beforeAll, describe, expect, test } from "vitest"
import { call, putSession, SESSION, writer } from "../support/claude-code.ts"
import { makeRepository } from "../support/repository.ts"
import { sharedTempDir, tempDir } from "../support/temp.ts"
import { syncHome, warmDex } from "../support/warm.ts"
import { type Visitor, visit, visitOnce } from "./served.ts"
import { FIXED, fillShop, QUOKKAS, refTo, SECRET, type Shop, WOMBATS, writes } from "./shop.ts"

const home = sharedTempDir()
let shop: Shop
beforeAll(async () => {
  shop = await fillShop(home)
})
const visitor = visitOnce(home)

type Seen = { status: number; text: string }

async function see({ get, log }: Visitor, path: string, query: Record<string, string> = {}): Promise<Seen> {
  const answer = await get(`${path}?${new URLSearchParams(query)}`)
  const text = await answer.text()
  expect(log).toEqual([])
  // The content of files and conversations is shown as text.
  expect(text).not.toMatch(/<b>bold|<[iu]>|<img |<script>|\u202e|walrus| style=|<style/)
  return { status: answer.status, text }
}

const file = async (path: string, more: Record<string, string> = {}) =>
  see(visitor(), "/file", { project: shop.folder, path, ...more })

describe("a file", () => {
  test("shows the owner of each line, as blame reports it", async () => {
    const { status, text } = await file("src/zoo.ts")
    const { stdout } = await warmDex(home, ["blame", "src/zoo.ts", "--json"], {}, shop.folder)
    const output = JSON.parse(stdout) as { proved: number; lines: { level: string; line: number }[] }
    expect(status).toBe(200)
    expect(output.proved).toBe(24)
    expect(text).toContain('aria-label="28 lines: 24 proved, 0 likely, 4 unknown"')
    const levels = [...text.matchAll(/<div class="ln (\w+)"><a class="at" id="L(\d+)"/g)]
    expect(levels.map(([, level, line]) => ({ level, line: Number(line) }))).toEqual(
      output.lines.map(({ level, line }) => ({ level, line })),
    )
  })

  test("groups lines of one owner, with links to the message and the commit", async () => {
    const { text } = await file("src/zoo.ts")
    const groups = [...text.matchAll(/role="group" aria-label="([^"]+)"><div class="who">(.*?)<div class="lns">/gs)]
    expect(groups.map(([, place]) => place)).toEqual(["Lines 1 to 4", "Lines 5 to 16", "Lines 17 to 28"])
    const [, person, quokkas, wombats] = [undefined, ...groups.map(([, , who]) => who)]
    expect(person).toContain("by hand")
    expect(person).toContain('<span class="how unknown">unknown</span>')
    expect(quokkas).toContain(`/c/${encodeURIComponent(refTo(QUOKKAS))}?at=`)
    expect(quokkas).toContain("Add the quokka table &lt;script&gt;alert(2)&lt;/script&gt;")
    expect(quokkas).toContain(`commit=${shop.commits.quokkas}`)
    expect(quokkas).toContain('<span class="how proved">proved</span><span>Claude Code</span>')
    expect(wombats).toContain(`/c/${encodeURIComponent(refTo(WOMBATS))}?at=3#m3`)
  })

  test("has its conversations, decisions, fixes and changes at the side", async () => {
    const { text } = await file("src/zoo.ts")
    const [, aside = ""] = /<aside(.*?)<\/aside>/s.exec(text) ?? []
    expect([...aside.matchAll(/<h2>(\w+) <span class="count">(\d+)/g)].map(([, name, count]) => [name, count])).toEqual(
      [
        ["Conversations", "3"],
        ["Decisions", "1"],
        ["Fixes", "1"],
        ["Changes", "3"],
      ],
    )
    expect(aside).toContain("TypeError: quokka.refresh is not a function &lt;i&gt;")
    expect(aside).toContain("zoo: quokkas &lt;b&gt;bold&lt;/b&gt;")
    expect(aside).toContain("reversed")
  })

  test("can be shown as it was at a commit", async () => {
    const { text } = await file("src/zoo.ts", { rev: shop.commits.quokkas })
    expect(text).toContain("as it was at <code>")
    expect(text).toContain('id="L12"')
    expect(text).not.toContain('id="L13"')
    expect((await file("src/zoo.ts", { rev: "--output=x" })).text).toContain("There is no commit")
  })

  test("that is deleted is reported, and can be shown as it was", async () => {
    const { status, text } = await file("src/gone.ts")
    expect(status).toBe(200)
    expect(text).toContain("There is no file src/gone.ts any more.")
    const [, rev] = /rev=([0-9a-f]+(?:%7E|~)1)/.exec(text) ?? []
    expect((await file("src/gone.ts", { rev: decodeURIComponent(rev!) })).text).toContain("dodo0")
  })

  test("that is not in git is reported, and not shown", async () => {
    const { status, text } = await file("ignored.env")
    expect(status).toBe(200)
    expect(text).toContain("ignored.env is not tracked by git, so its lines have no history.")
    expect(text).toContain(`/c/${encodeURIComponent(refTo(WOMBATS))}?at=`)
    expect(text).not.toContain("KEY=")
  })

  test("that is long is loaded in parts of 1,000 lines", async () => {
    const place = { project: shop.folder, path: "long.ts" }
    const numbers = ({ text }: Seen) => {
      const all = [...text.matchAll(/ id="L(\d+)"/g)].map(([, line]) => Number(line))
      return [all[0], all.at(-1), all.length]
    }
    const first = await see(visitor(), "/file", place)
    expect(numbers(first)).toEqual([1, 1_000, 1_000])
    expect(first.text).toMatch(/rel="next" href="[^"]*from=1001" data-part="[^"]*\/file\/part\?[^"]*from=1001"/)
    expect(first.text).not.toContain('rel="prev"')
    const part = await see(visitor(), "/file/part", { ...place, from: "1001" })
    expect(numbers(part)).toEqual([1_001, 2_000, 1_000])
    expect(part.text).toMatch(/^<section class="part"/)
    expect(numbers(await see(visitor(), "/file", { ...place, at: "2400" }))).toEqual([2_001, 2_500, 500])
    for (const from of ["-1", "x", "999999999999"])
      expect((await see(visitor(), "/file", { ...place, from })).status).toBe(200)
  })
})

describe("nothing outside the project is shown", () => {
  test.each([
    "../other/secret.txt",
    "src/../../other/secret.txt",
    "..",
    ".",
    "",
    "/etc/passwd",
    "link.txt",
    "linked/secret.txt",
    "linked/none.txt",
    "src/zoo.ts\0",
    "none.ts",
    ".git/config",
  ])("%j", async (path) => {
    for (const more of [{}, { rev: "HEAD" }] as Record<string, string>[]) {
      const { status, text } = await see(visitor(), "/file", { project: shop.folder, path, ...more })
      expect([status, text]).toEqual([404, expect.stringContaining("<h1>Not shown</h1>")])
    }
    const whole = join(shop.other, "secret.txt")
    expect((await see(visitor(), "/file", { project: shop.folder, path: whole })).status).toBe(404)
  })

  test("only projects that dex knows", async () => {
    for (const project of [shop.other, `${shop.folder}/`, `${shop.folder}/../other`, "/", ""]) {
      expect((await see(visitor(), "/file", { project, path: "secret.txt" })).status).toBe(404)
      expect((await see(visitor(), "/commit", { project, commit: shop.commits.own })).status).toBe(404)
    }
  })

  test("a private project only inside it", async () => {
    const own = { project: shop.below, path: "walrus.ts" }
    const addresses: [string, Record<string, string>][] = [
      ["/file", own],
      ["/file/part", own],
      ["/file", { project: shop.folder, path: "below/walrus.ts" }],
      ["/file", { project: shop.folder, path: "below/walrus.ts", rev: "HEAD" }],
      [`/decision/${encodeURIComponent(`${refTo(SECRET)}#1`)}`, {}],
    ]
    const { stdout } = await warmDex(home, ["fix", "walrus.feed is not a function", "--json"], {}, shop.below)
    const failed = (JSON.parse(stdout) as { fixes: { failed_ref: string }[] }).fixes[0]!.failed_ref
    addresses.push([`/fix/${encodeURIComponent(failed)}`, {}])
    for (const [path, query] of addresses) {
      const answer = await visitor().get(`${path}?${new URLSearchParams(query)}`)
      const text = await answer.text()
      expect([path, answer.status]).toEqual([path, 404])
      expect(text.replaceAll("walrus.ts", "")).not.toContain("walrus")
    }
    const inside = await visit(home, shop.below)
    for (const [path, query] of addresses.filter(([, { project }]) => project !== shop.folder)) {
      const answer = await inside.get(`${path}?${new URLSearchParams(query)}`)
      expect([path, answer.status]).toEqual([path, 200])
      expect(await answer.text()).toContain("walrus")
    }
  })
})

describe("a commit", () => {
  test("says why it was made, and who wrote its lines", async () => {
    const { status, text } = await see(visitor(), "/commit", {
      project: shop.folder,
      commit: shop.commits.quokkas.slice(0, 8),
    })
    expect(status).toBe(200)
    expect(text).toContain("<h1>zoo: quokkas &lt;b&gt;bold&lt;/b&gt;</h1>")
    expect(text).toContain("<dt>Asked</dt>")
    expect(text).toContain("Add the quokka table")
    expect(text).toContain('aria-label="12 lines: 12 proved, 0 likely, 0 unknown"')
    expect(text).toContain('<span class="how proved">proved, 12 of 12 lines</span>')
    expect(text.match(/<div class="ln proved">/g)).toHaveLength(12)
    const own = await see(visitor(), "/commit", { project: shop.folder, commit: shop.commits.own })
    expect(own.text).toContain("No conversation that dex has read is known to have written it.")
    expect(own.text).toContain("// &lt;img src=x onerror=alert(1)&gt;")
  })

  test("is named by its hash only", async () => {
    for (const commit of ["HEAD", "main", "HEAD~1..HEAD", "--output=x", "", "ffffffffffff"])
      expect((await see(visitor(), "/commit", { project: shop.folder, commit })).status).toBe(404)
  })
})

test("a decision has the decisions that it reversed and that reversed it, and its message", async () => {
  const { stdout } = await warmDex(home, ["decisions", "--json"], {}, shop.folder)
  type ListedDecision = { ref: string; quote: string; superseded_by?: { ref: string } }
  const decisions = (JSON.parse(stdout) as { decisions: ListedDecision[] }).decisions
  const earlier = decisions.find(({ superseded_by }) => superseded_by)!
  const later = earlier.superseded_by!.ref
  const first = await see(visitor(), `/decision/${encodeURIComponent(earlier.ref)}`)
  expect(first.text).toContain("telemetry should be enabled by default for quokkas")
  expect(first.text).toMatch(/<h2>Reversed by<\/h2>.*we want telemetry disabled by default for quokkas/s)
  expect(first.text).toContain(`/decision/${encodeURIComponent(later)}`)
  expect(first.text).toMatch(/<article class="message person"/)
  expect(first.text).toContain("path=src%2Fzoo.ts")
  const second = await see(visitor(), `/decision/${encodeURIComponent(later)}`)
  expect(second.text).toMatch(/<h2>Reverses<\/h2>.*telemetry should be enabled by default for quokkas/s)
  expect(second.text).toContain(encodeURIComponent(refTo(WOMBATS)))
  expect((await see(visitor(), `/decision/${encodeURIComponent(`${refTo(WOMBATS)}#99`)}`)).status).toBe(404)
})

test("a fix has the error, the edit and the run that passed", async () => {
  const { stdout } = await warmDex(home, ["fix", "quokka.refresh is not a function", "--json"], {}, shop.folder)
  const [fix] = (JSON.parse(stdout) as { fixes: { failed_ref: string; ref: string }[] }).fixes
  const { status, text } = await see(visitor(), `/fix/${encodeURIComponent(fix!.failed_ref)}`)
  expect(status).toBe(200)
  expect(text).toContain("<h1>TypeError: quokka.refresh is not a function &lt;i&gt;</h1>")
  expect(text).toContain("quokka.run()&lt;u&gt;")
  for (const ref of [fix!.failed_ref, fix!.ref]) {
    const [whole, number] = ref.split("#")
    expect(text).toContain(`/c/${encodeURIComponent(whole!)}?at=${number}#m${number}`)
  }
  expect((await see(visitor(), `/fix/${encodeURIComponent(refTo(FIXED))}`)).status).toBe(404)
  expect((await see(visitor(), "/fix/nothing")).status).toBe(404)
})

test("without a history a file has its lines, and every page says what to do", async () => {
  const empty = tempDir()
  const { folder, git } = makeRepository(join(empty, "new"))
  writeFileSync(join(folder, "a.ts"), "export const a = 1\n")
  git("add", "-A")
  git("commit", "-q", "-m", "start")
  const newcomer = await visit(empty, folder)
  const page = await see(newcomer, "/file", { project: folder, path: "a.ts" })
  expect(page.text).toContain("1 unknown")
  const commit = await see(newcomer, "/commit", { project: folder, commit: git("rev-parse", "HEAD") })
  for (const { text } of [page, commit]) expect(text).toContain("dex sync")
  for (const path of ["/decision/claude_code%3Ax%231", "/fix/claude_code%3Ax%231"]) {
    const { status, text } = await see(newcomer, path)
    expect([status, text]).toEqual([404, expect.stringContaining("dex sync")])
  }
})

test("a file in a worktree leads to the project's file, and a commit that is gone to what its conversation knows", async () => {
  const own = tempDir()
  const { folder } = makeRepository(join(own, "zoo"))
  const transcript = writer({ cwd: folder })
  transcript.prompt("# Feed the numbat\n\n## Twice")
  writes(transcript, "e1", join(folder, ".worktrees/3/src/feed.ts"), ["one", "two <img >"])
  transcript.answer("m_g", [call("g1", "Bash", { command: "git commit -m x" })])
  transcript.result("g1", "[main 1a2b3c4] Feed <img >\n 1 file changed", {
    toolUseResult: { stdout: "[main 1a2b3c4] Feed <img >\n 1 file changed", stderr: "", interrupted: false },
  })
  putSession(own, transcript.records)
  await syncHome(own)
  const visitor = await visit(own)
  const facts = await see(visitor, `/c/${encodeURIComponent(refTo(SESSION))}/facts`)
  const link = new URLSearchParams({ project: folder, path: "src/feed.ts" }).toString().replaceAll("&", "&amp;")
  expect(facts.text).toContain(link)
  expect(facts.text).toContain(">src/feed.ts</a>")
  const outline = await see(visitor, `/c/${encodeURIComponent(refTo(SESSION))}/outline`)
  expect(outline.text).toContain(">Feed the numbat Twice</a>")
  for (const commit of ["1a2b3c4", "1a2b3c4ffff"]) {
    const { status, text } = await see(visitor, "/commit", { project: folder, commit })
    expect([commit, status]).toEqual([commit, 200])
    expect(text).toContain("<h1>Feed &lt;img &gt;</h1>")
    expect(text).toContain("does not contain this commit any more")
    expect(text).toContain("Feed the numbat")
    expect(text).toMatch(new RegExp(`${link.replaceAll(/[.+?]/g, "\\$&")}">src/feed.ts</a> <span class="added">\\+2`))
  }
  expect((await see(visitor, "/commit", { project: folder, commit: "1a2b3c5" })).status).toBe(404)
})
