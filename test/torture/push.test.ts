import { test } from "vitest"
import { sayNoneOf, WAYS } from "../suggest/strangers.ts"

/** 25 in CI, all of a thousand by `npm run torture`. */
const PER_WAY = Number(process.env.DEX_PASSAGES ?? 25)

test(`of ${Object.keys(WAYS).length * PER_WAY} passages from strangers, made as relevant as can be, none is pushed`, () =>
  sayNoneOf(PER_WAY))
