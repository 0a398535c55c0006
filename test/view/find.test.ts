import { describe, expect, test } from "vitest"
import { claudeSession } from "../support/home.ts"
import { synced, syncedOnce } from "../support/synced.ts"
import { tempDir } from "../support/temp.ts"
import { warmDex } from "../support/warm.ts"
import { visit, visitOnce } from "./served.ts"

const EVIL = `<img src=x onerror=alert(1)> </script><svg onload=alert(2)> zebra \u202egnp.exe "quoted" 'and' &amp;`

const home = syncedOnce((home) => {
  claudeSession(home, {
    id: "44444444-4444-4444-8444-444444444444",
    start: "2026-09-02T10:00:00Z",
    cwd: "/code/evil",
    title: `${EVIL} title`,
    turns: [{ user: EVIL }, { assistant: EVIL }],
  })
  for (const [i, name] of ["den", "zoo"].entries())
    claudeSession(home, {
      id: `6666000${i}-6666-4666-8666-666666666666`,
      start: `2026-09-0${i + 3}T10:00:00Z`,
      cwd: `/code/${name}`,
      title: `The ${name}`,
      turns: [{ user: "feed the okapi" }, { assistant: "fed" }],
    })
  for (let i = 0; i < 25; i++)
    claudeSession(home, {
      id: `5555${String(i).padStart(4, "0")}-5555-4555-8555-555555555555`,
      start: `2026-10-${String(i + 1).padStart(2, "0")}T10:00:00Z`,
      cwd: "/code/many",
      title: `Gardening day ${i + 1}`,
      turns: [{ user: `water the pelargonium number ${i}` }, { assistant: "watered" }],
    })
})

const visitor = visitOnce(home)

async function page(path: string): Promise<string> {
  const { get, log } = visitor()
  const answer = await get(path)
  expect([path, answer.status, log]).toEqual([path, 200, []])
  return answer.text()
}

async function outputOf(args: string[]) {
  return JSON.parse((await warmDex(home, [...args, "--json"])).stdout)
}

const rowsOf = (text: string) => [...text.matchAll(/<li class="row".*?<\/li>/gs)].map(([row]) => row)
const titlesOf = (text: string) => [...text.matchAll(/<a class="title" href="[^"]*">([^<]*)<\/a>/g)].map(([, t]) => t)
const linkTo = (text: string, says: string) =>
  new RegExp(`<a href="([^"]*)"[^>]*><span>${says}</span>`).exec(text)?.[1]?.replaceAll("&amp;", "&")
const inView = (address: string) => `/${address.split("/").slice(2).join("/")}`

describe("finding", () => {
  test("shows search results with the words marked, and links to the message", async () => {
    const { results } = await outputOf(["search", "refresh token race", "--limit", "20"])
    const text = await page("/find?q=refresh+token+race")
    expect(titlesOf(text)).toEqual(results.map(({ title }: { title: string }) => title))
    const [first] = rowsOf(text)
    expect(first).toContain("<mark>token</mark>")
    expect(first).toMatch(/class="agent">Claude Code</)
    expect(first).toContain(`/c/${encodeURIComponent(results[0].id)}`)
    expect(text.match(/<h1/g)).toHaveLength(1)
    expect(text).toContain('name="q" value="refresh token race"')
    expect(text).not.toMatch(/ style=| onclick=|<style|<script(?! type="module" src=)/)
  })

  test("explains each score as a sum", async () => {
    const [first] = rowsOf(await page("/find?q=refresh+token+race"))
    const numbers = [...first!.matchAll(/<td class="number">([-\d.]+)<\/td>/g)].map(([, n]) => Number(n))
    const sum = numbers.pop()!
    expect(numbers.length).toBeGreaterThan(1)
    expect(numbers.reduce((a, b) => a + b, 0)).toBeCloseTo(sum, 1)
    expect(first).toContain("the words; rarer words count more")
  })

  test("without words it shows the same as dex list, in pages", async () => {
    const { conversations, total } = await outputOf(["list", "--limit", "100"])
    const first = await page("/find")
    expect(first).toContain(`1 to 20 of ${total} conversations, newest first`)
    expect(first).toContain("Not shown: 1 automated.")
    const second = await page("/find?offset=20")
    const shown = [...rowsOf(first), ...rowsOf(second)].map((row) => /\/c\/([^"?#]*)/.exec(row)![1])
    expect(shown).toEqual(conversations.map(({ id }: { id: string }) => encodeURIComponent(id)))
    expect(first).toContain('rel="next"')
    expect(second).not.toContain('rel="next"')
    expect(second).toContain('rel="prev"')
    expect(await page("/find?offset=900")).toContain("No more results.")
  })

  test("shows search results in pages", async () => {
    const first = await page("/find?q=pelargonium")
    const second = await page("/find?q=pelargonium&offset=20")
    expect(first).toContain("1 to 20 of 25 conversations, best first")
    expect(second).toContain("21 to 25 of 25 conversations, best first")
    expect(new Set([...titlesOf(first), ...titlesOf(second)]).size).toBe(25)
    expect([first.includes('rel="next"'), second.includes('rel="next"')]).toEqual([true, false])
  })

  test("the number next to a filter is what the linked page shows, and the filter can be removed", async () => {
    const text = await page("/find")
    for (const [says, count] of [
      ["many", 25],
      ["2026-10", 25],
      ["2026-11", 2],
      ["web", 1],
    ] as const) {
      const address = linkTo(text, says)!
      expect(text).toMatch(new RegExp(`<span>${says}</span><span class="number">${count}</span>`))
      const narrowed = await page(inView(address))
      expect(narrowed).toContain(`${count === 25 ? "1 to 20 of 25" : count} conversation`)
      const back = /<ul class="chips".*?<a href="([^"]*)"/s.exec(narrowed)![1]!
      expect(inView(back)).toBe("/find")
    }
  })

  test("a bar is a link to its month, and has its number as a label", async () => {
    const text = await page("/find?from=2026-10&to=2026-10")
    expect(text).toMatch(
      /<a href="[^"]*from=2026-11&amp;to=2026-11" aria-label="2026-11: 2 conversations" data-value="2026-11: 2 conversations">/,
    )
    // The link of an active filter removes it.
    expect(text).toMatch(
      /<a href="[^"]*\/find" aria-label="2026-10: 25 conversations" data-value="[^"]*" class="chosen"/,
    )
  })

  test("in a search, the bars and the numbers count the conversations with its words", async () => {
    const text = await page("/find?q=okapi")
    expect(linkTo(text, "den")).toMatch(/q=okapi&project=%2Fcode%2Fden/)
    for (const name of ["den", "zoo"]) expect(text).toMatch(new RegExp(`<span>${name}</span><span class="number">1<`))
    expect(text).toMatch(/aria-label="2026-09: 2 conversations"/)
    expect(text).not.toMatch(/<span>web<|aria-label="2026-1/)
    expect(titlesOf(await page("/find?q=water&project=%2Fcode%2Fweb"))).toEqual([])
    const token = await page("/find?q=refresh+token")
    expect(token).toMatch(/aria-label="2026-11: 1 conversation"/)
    expect(token).toContain("one message contains all these words")
    // No message contains both, so nothing is counted.
    const none = await page("/find?q=water+token")
    expect(titlesOf(none).length).toBeGreaterThan(0)
    expect(none).not.toMatch(/svg class="months"|class="number">\d+<\/span><\/a>/)
  })

  test("dates are chosen, a month in the address is shown as its days, and subagents can be listed", async () => {
    const text = await page("/find?from=2026-10&to=2026-10")
    expect(text).toContain('<input type="date" name="from" value="2026-10-01">')
    expect(text).toContain('<input type="date" name="to" value="2026-10-31">')
    const { total } = await outputOf(["list", "--all", "--limit", "100"])
    const all = await page("/find?subagents=1")
    expect(all).toContain(`of ${total} conversations`)
    expect(all).toContain('name="subagents" value="1" checked')
    expect(all).toContain("with <b>subagents and automated runs</b>")
    expect(await page("/find?subagents=1&from=2026-10&to=2026-10")).toContain("of 25 conversations")
    expect(await page("/find?from=&to=&file=&tool=")).toContain("conversations, newest first")
    expect(await page("/find?q=water")).not.toContain('name="subagents"')
  })

  test("a form filters by file and tool and keeps the other filters; the search field at the top keeps them too", async () => {
    const text = await page("/find?q=token&file=src%2Fauth.ts&tool=Bash")
    expect(titlesOf(text)).toEqual(["Refresh token race"])
    expect(text).toMatch(/<form action="[^"]*\/find"><input type="hidden" name="q" value="token">/)
    expect(text).toMatch(/role="search">.*<input type="hidden" name="file" value="src\/auth.ts">.*<\/form>/)
    expect(titlesOf(await page("/find?file=src%2Fauth.ts"))).toEqual(["Refresh token race"])
    expect(await page("/find?tool=Bash")).toContain("also type words to search for")
  })

  test("says which word was replaced", async () => {
    const text = await page("/find?q=pelargonuim")
    expect(text).toContain("No message contains &quot;pelargonuim&quot;. Showing results for &quot;pelargonium&quot;.")
    expect(titlesOf(text).length).toBe(20)
  })

  test("if nothing is found, it says what to try", async () => {
    const text = await page("/find?q=xylophone+quagga&project=web")
    expect(text).toContain("Nothing found.")
    expect(text).toMatch(/href="[^"]*\?q=xylophone\+quagga">Search everything</)
    expect(text).toMatch(/href="[^"]*\?q=quagga&amp;project=web">quagga</)
    expect((await visitor().get("/find?from=never")).status).toBe(400)
  })

  test("hostile text stays text, in rows, in the query and in the filters", async () => {
    for (const path of [
      "/find?q=zebra",
      `/find?q=${encodeURIComponent(EVIL)}`,
      `/find?project=${encodeURIComponent(EVIL)}&file=${encodeURIComponent(EVIL)}`,
      `/find?q=zebra&quick=1`,
    ]) {
      const text = await page(path)
      expect(text).not.toMatch(/<img|<svg onload|\u202e/)
      expect(text.match(/<\/script>/g)?.length ?? 0).toBeLessThanOrEqual(1)
      expect(text).toContain("&lt;img")
    }
  })

  test("a part is the same without the document around it", async () => {
    const [part, whole] = await Promise.all([page("/find?q=token&part=1"), page("/find?q=token")])
    expect(part.startsWith('<div class="finding">')).toBe(true)
    expect(whole).toContain(part)
  })
})

describe("finding while a person types", () => {
  test("the beginning of a word is enough, and nothing is counted", async () => {
    const text = await page("/find?q=pelarg&quick=1")
    expect(rowsOf(text)).toHaveLength(20)
    expect(text).toContain("<mark>pelargonium</mark>")
    expect(text).not.toContain("why it is here")
  })

  test.each(["", "xylophone", "token -race", '"sidebar flickers"', "token&file=x", "token&to=2026-10"])(
    "a query that would mean something else is left to the full search: %s",
    async (question) => expect(await page(`/find?q=${question.replaceAll(" ", "+")}&quick=1`)).toBe(""),
  )
})

test("a private project is found only inside it", async () => {
  const own = await synced()
  await warmDex(own, ["private", "/code/web"])
  const { get } = await visit(own)
  for (const path of ["/find", "/find?q=sidebar", "/find?q=sidebar&quick=1", "/find?project=web"]) {
    const text = await (await get(path)).text()
    expect(text).not.toMatch(/code\/web|flickers|<span>web</)
  }
})

test("an empty history says what to do", async () => {
  const { get } = await visit(tempDir())
  const text = await (await get("/find")).text()
  expect(text).toContain("dex has not read any conversations yet")
  expect(text).toMatch(/action="[^"]*\/do\/sync".*<button>Sync now<\/button>/)
})
