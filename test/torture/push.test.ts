import { test } from "vitest"
import { sayNoneOf, WAYS } from "../suggest/strangers.ts"

/** 10 in CI, 72 with `npm run torture`. */
const PER_WAY = Number(process.env.DEX_PASSAGES ?? 10)

test(`none of ${Object.keys(WAYS).length * PER_WAY} passages from strangers, made as relevant as possible, is pushed`, () =>
  sayNoneOf(PER_WAY))
