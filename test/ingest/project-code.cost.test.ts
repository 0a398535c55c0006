import { expect, test } from "vitest"
import { processorMs } from "../support/hostile.ts"
import { openProject } from "./code-project.ts"

test("modules that all re-export one another are resolved quickly, with their definitions", async () => {
  const names = Array.from({ length: 16 }, (_, i) => `b${i}`)
  const all = (own: string) => names.filter((name) => name !== own).map((name) => `export * from "./${name}.ts"\n`)
  const chain = ["c1", "c2", "c3", "c4"]
  const { knowledge, project, sync } = openProject({
    ...Object.fromEntries(names.map((name) => [`${name}.ts`, all(name).join("")])),
    "b15.ts": 'export * from "./old.ts"\n',
    "old.ts": "/** @deprecated use better */\nexport function old() {}\n",
    // The long path through the chain ends before it reaches deep.ts.
    "entry.ts": 'export * from "./c1.ts"\nexport * from "./hub.ts"\n',
    ...Object.fromEntries(chain.map((name, i) => [`${name}.ts`, `export * from "./${chain[i + 1] ?? "hub"}.ts"\n`])),
    "hub.ts": 'export * from "./deep.ts"\n',
    "deep.ts": "/** @deprecated use shallow */\nexport function deep() {}\n",
    "use.ts": 'import { gone, old } from "./b0.ts"\nimport { deep } from "./entry.ts"\ngone()\nold()\ndeep()\n',
  })
  await sync()
  const uses: string[] = []
  const took = processorMs(() => {
    for (const { symbol, line } of knowledge.symbols.deprecatedUsedIn(project, "use.ts"))
      uses.push(`${symbol.name} ${line}`)
  })
  expect(uses).toEqual(["old 4", "deep 5"])
  expect(took).toBeLessThan(1_000)
})
