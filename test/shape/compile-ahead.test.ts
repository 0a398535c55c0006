import { Script } from "node:vm"
import { expect, test } from "vitest"
import { compiledAhead } from "../../scripts/compile-ahead.mjs"

const BUNDLE = `import{sep}from"node:path";
var __esm=(fn,res)=>()=>(fn&&(res=fn[Object.keys(fn)[0]](fn=0)),res);
function early(){return later()+1}
var said=[],init_a=__esm({"src/a.ts"(){"use strict";said.push("a"+early())}});
async function* counted(most){for(let i=0;i<most;i++)yield i}
async function all(most){let found=[];for await(const one of counted(most))found.push(one);return found}
init_a();init_a();
function later(){return 41}
export{said,all,early,sep};`

const load = (text: string) => import(`data:text/javascript,${encodeURIComponent(text)}`)

test("a bundle that is compiled ahead of time behaves the same", async () => {
  const [before, after] = await Promise.all([BUNDLE, compiledAhead(BUNDLE)].map(load))
  expect(after.said).toEqual(["a42"])
  expect(after.said).toEqual(before.said)
  expect(await after.all(3)).toEqual([0, 1, 2])
  expect(after.early.name).toBe("early")
})

test("V8 compiles the bundle's functions and modules as soon as it reads them, so that Node caches them", () => {
  const body = (name: string) =>
    `let sum=0;for(let i=0;i<10;i++){sum+=i*${name.length};if(sum>99)return"${name}"}return sum`
  const functions = `function first(){${body("first")}}`
  const modules = `var __esm=fn=>fn,init_b=__esm({"src/b.ts"(){${body("module")}}});`
  const kept = (text: string) => new Script(text).createCachedData().length
  for (const text of [functions, modules]) expect(kept(compiledAhead(text))).toBeGreaterThan(kept(text) + 200)
})
