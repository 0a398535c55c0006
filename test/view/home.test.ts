import { readFileSync, utimesSync, writeFileSync } from "node:fs"
import { expect, test } from "vitest"
import { localDay } from "../../src/core/dates.ts"
import { claudeSession, type Turn } from "../support/home.ts"
import { tempDir } from "../support/temp.ts"
import { syncHome, warmDex } from "../support/warm.ts"
import { type Visitor, visit } from "./served.ts"

const DAY = 86_400_000
const ago = (days: number) => new Date(Date.now() - days * DAY)
const id = (n: number | string) => `${String(n).repeat(8)}-0000-4000-8000-000000000000`
const OPUS = "claude-opus-4-5-20251101"

/** A session so many days ago, with a model that has a price. */
function session(
  home: string,
  n: number | string,
  days: number,
  more: { cwd?: string; title?: string; turns?: Turn[] } = {},
) {
  const turns = more.turns ?? [{ user: `Task ${n}`, assistant: "Done." }]
  const path = claudeSession(home, { id: id(n), start: ago(days).toISOString(), ...more, turns })
  writeFileSync(path, readFileSync(path, "utf8").replaceAll('"model-a"', JSON.stringify(OPUS)))
  utimesSync(path, ago(days), ago(days))
  return path
}

const bash = (command: string, output: string, error = false): Turn => ({
  tool: { name: "Bash", input: { command }, output, error },
})

const NAMING = ["/newest", "/left-open", "/deleted-soon", "/projects"]
const PARTS = ["/year", "/spent", ...NAMING]
/** Synced and learned, so that the page does not depend on the progress of learning. */
async function readAll(home: string): Promise<void> {
  await syncHome(home)
  expect((await warmDex(home, ["usage"])).code).toBe(0)
}

const textOf = async (visitor: Visitor, path: string) => {
  const answer = await visitor.get(path)
  expect([path, answer.status, visitor.log]).toEqual([path, 200, []])
  return answer.text()
}
const json = async (home: string, args: string[]) => JSON.parse((await warmDex(home, [...args, "--json"])).stdout)

test("home shows the newest ten at once, and loads the other sections later", async () => {
  const home = tempDir()
  for (let n = 1; n < 10; n++) session(home, n, n * 20, { title: `Number ${n}` })
  session(home, 0, 1, { title: "The newest" })
  session(home, "a", 2, { title: "The second" })
  await readAll(home)
  const visitor = await visit(home)
  const page = await textOf(visitor, "/")
  const titles = [...page.matchAll(/class="row" tabindex="-1"><a class="title" href="[^"]+">([^<]+)/g)]
  const expected = ["The newest", "The second", ...[1, 2, 3, 4, 5, 6, 7, 8].map((n) => `Number ${n}`)]
  expect(titles.map(([, title]) => title)).toEqual(expected)
  expect(page).toContain("All 11 conversations")
  const late = [...page.matchAll(/data-late="([^"]+)"/g)].map(([, one]) => one!.replaceAll("&amp;", "&"))
  expect(late).toHaveLength(5)
  const { pathname } = new URL(visitor.base)
  for (const address of late) {
    const path = address.slice(pathname.length)
    const part = await textOf(visitor, path)
    if (path.includes("left-open"))
      expect(part).toBe("") // nothing is left open, so the page leaves it out
    else expect(part).toMatch(/^<section><header><h2>/)
    const whole = await textOf(visitor, path.replace(/[?&]part=1/, ""))
    for (const one of [page, whole]) {
      expect(one.match(/<h1>/g)).toHaveLength(1)
      expect(one).not.toMatch(/ style=| on\w+=|<style|<script(?! type="module" src=)/)
    }
  }
})

test("the year shows each day with use, with its numbers and a link", async () => {
  const home = tempDir()
  for (const [n, days] of [0, 1, 40, 300].entries()) session(home, n, days)
  await readAll(home)
  const { days } = await json(home, ["usage", "--from", "370d"])
  expect(days).toHaveLength(4)
  const visitor = await visit(home)
  const year = await textOf(visitor, "/year?part=1")
  const cells = [...year.matchAll(/<a href="[^"]*find\?from=([\d-]+)&amp;to=\1" tabindex="-1"/g)]
  expect(cells.map(([, day]) => day)).toEqual(days.map(({ day }: { day: string }) => day))
  for (const { day, tokens } of days) expect(year).toMatch(new RegExp(`>${day}</a></th><td>1</td><td>${tokens}</td>`))
  const spent = await textOf(visitor, "/spent?from=30d&part=1")
  expect(spent).toMatch(/<figcaption>Cost <b>(&lt;)?\$\d/)
  expect(spent).toContain(OPUS)
  expect(spent.match(/<th scope="row">\d{4}-\d\d-\d\d<\/th>/g)).toHaveLength(2)
})

test("the newest conversations are a section that can be reloaded", async () => {
  const home = tempDir()
  session(home, 1, 1)
  await readAll(home)
  const visitor = await visit(home)
  const page = await textOf(visitor, "/")
  const part = await textOf(visitor, "/newest")
  expect(part).toMatch(/^<section class="newest" data-live="[^"]+\/newest">/)
  expect(page).toContain(part)
  session(home, 2, 0, { title: "It came meanwhile" })
  await readAll(home)
  expect(await textOf(visitor, "/newest")).toContain("It came meanwhile")
})

test("if nothing is new, shows the days until the last work, and says so", async () => {
  const home = tempDir()
  session(home, 1, 100)
  await readAll(home)
  const visitor = await visit(home)
  const [from, until] = [ago(129), ago(100)].map((at) => localDay(at.getTime()))
  expect(await textOf(visitor, "/")).toContain(`spent?days=30&amp;from=${from}&amp;to=${until}`)
  const long = localDay(ago(189).getTime())
  expect(await textOf(visitor, "/?days=90")).toContain(`spent?days=90&amp;from=${long}&amp;to=${until}`)
  expect(await textOf(visitor, `/spent?from=${long}&to=${until}`)).toContain(`${long} to ${until}`)
})

test("projects have their lines, commits and cost", async () => {
  const home = tempDir()
  const edit = (file_path: string): Turn => ({
    tool: { name: "Edit", input: { file_path, old_string: "one", new_string: "one\ntwo" }, output: "Edited" },
  })
  const path = session(home, 1, 2, {
    turns: [{ user: "Write it" }, edit("/code/api/a.ts"), bash("git commit -m x", "[main 1a2b3c4] x\n 1 file changed")],
  })
  // Claude Code's record of an edit, in addition to its output.
  const patch = { oldStart: 1, oldLines: 1, newStart: 1, newLines: 3, lines: ["-one", "+one!", "+two", "+three"] }
  const edited = { filePath: "/code/api/a.ts", structuredPatch: [patch] }
  const transcript = readFileSync(path, "utf8").replace(
    /"toolUseResult":\{"stdout":"Edited"[^}]*\}/,
    `"toolUseResult":${JSON.stringify(edited)}`,
  )
  writeFileSync(path, transcript)
  session(home, 2, 3, { cwd: "/code/web" })
  session(home, 3, 300, { cwd: "/code/old" })
  await readAll(home)
  const { conversations } = await json(home, ["list"])
  const { lines_added, lines_removed, commits } = conversations[0]
  expect([lines_added, lines_removed, commits]).toEqual([3, 1, 1])
  const { rows } = await json(home, ["usage", "project", "--from", "30d"])
  const part = await textOf(await visit(home), "/projects?from=30d")
  expect(part).toContain(
    `+${lines_added}</span> <span class="removed">−${lines_removed}</span></td><td>${commits}</td>`,
  )
  for (const { key } of rows) expect(part).toContain(`>${key.slice("/code/".length)}</a>`)
  expect(part).not.toContain(">old</a>")
})

test("lists work that broke off and checks that did not pass afterwards", async () => {
  const home = tempDir()
  const failed = bash("npm run build", "src/a.ts: error TS2322", true)
  session(home, 1, 3, { turns: [{ user: "Build it" }, failed, { assistant: "I stop here." }] })
  session(home, 2, 2, {
    cwd: "/code/web",
    turns: [{ user: "Do it" }, { assistant: "Done." }, { user: "And the sidebar?" }],
  })
  await readAll(home)
  const visitor = await visit(home)
  const open = await textOf(visitor, "/left-open")
  expect(open).toMatch(/Broken off<\/h2>.*And the sidebar\?/s)
  expect(open).toMatch(/did not pass afterwards<\/h2>.*npm run build.*error TS2322/s)
  session(home, 3, 1, { turns: [{ user: "Again" }, bash("npm run build", "ok"), { assistant: "It builds." }] })
  await readAll(home)
  expect(await textOf(visitor, "/left-open")).not.toContain("npm run build")
})

test("names the conversations that Claude Code deletes within a week, and says that dex has them", async () => {
  const home = tempDir()
  const paths = [session(home, 1, 25, { title: "Soon gone" }), session(home, 2, 5, { title: "Not yet" })]
  const visitor = await visit(home)
  expect(await textOf(visitor, "/deleted-soon")).toContain("dex has not read 1 of these")
  await syncHome(home) // the view may be learning: what is learned is not of this page
  const part = await textOf(visitor, "/deleted-soon?part=1")
  expect(part).toContain("Soon gone")
  expect(part).not.toContain("Not yet")
  expect(part).toContain("dex has a copy")
  expect(part).toContain(`on ${localDay(ago(25).getTime() + 30 * DAY)}`)
  for (const path of paths) utimesSync(path, new Date(), new Date())
  expect(await textOf(visitor, "/deleted-soon")).toContain("none within a week")
  expect(await textOf(visitor, "/deleted-soon?part=1")).toBe("") // the open page leaves it out
})

test("hostile titles, folders and commands are text in every section", async () => {
  const home = tempDir()
  const evil = "<img src=x onerror=alert(1)>\"' \u202eevil"
  session(home, 1, 25, {
    cwd: '/code/<img src=x onerror="alert(2)">',
    title: evil,
    turns: [
      { user: `${evil} <script>alert(3)</script>` },
      bash(`npm test "${evil}"`, `FAIL ${evil}`, true),
      { user: evil },
    ],
  })
  await readAll(home)
  const visitor = await visit(home)
  for (const path of ["/", ...NAMING]) {
    const page = await textOf(visitor, path)
    expect(page, path).toContain("&lt;img src=x onerror")
    expect(page, path).not.toMatch(/<img|<script(?! type="module" src=)|\u202e/)
  }
})

test("nothing of a private project is shown outside it", async () => {
  const home = tempDir()
  const turns = [
    { user: "The vault prompt" },
    bash("npm test", "FAIL vault.test.ts", true),
    { user: "And the vault rest?" },
  ]
  session(home, 1, 25, { cwd: "/code/vault", title: "The vault work", turns })
  session(home, 2, 2, { cwd: "/code/web", title: "Seen" })
  await readAll(home)
  expect((await warmDex(home, ["private", "/code/vault"])).code).toBe(0)
  const visitor = await visit(home)
  for (const path of ["/", ...PARTS, "/projects?from=60d"]) expect(await textOf(visitor, path)).not.toMatch(/vault/i)
  expect(await textOf(visitor, "/")).toContain("Seen")
})

test("without any conversation it says what to do", async () => {
  const visitor = await visit(tempDir())
  for (const path of ["/", "/usage"]) expect(await textOf(visitor, path)).toMatch(/<h1>Nothing yet<\/h1>.*dex sync/s)
  for (const path of PARTS) expect(await textOf(visitor, path)).toMatch(/class="none"/)
  for (const path of PARTS.filter((one) => one !== "/newest")) expect(await textOf(visitor, `${path}?part=1`)).toBe("")
})
