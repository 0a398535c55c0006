import type { Settings } from "../config/settings.ts"
import { RANK_WEIGHTS, type RankWeights } from "./rank.ts"

/** The weights that a user may choose, or have fitted to their own history, in percent. */
export type Fitted = { pairs: number; neighbours: number; decay: number }

export const FITTED_SETTINGS = {
  pairs: "search.pairs",
  neighbours: "search.neighbours",
  decay: "search.decay",
} as const satisfies Record<keyof Fitted, keyof Settings>

export function fittedOf(settings: Settings): Fitted {
  return {
    pairs: settings[FITTED_SETTINGS.pairs],
    neighbours: settings[FITTED_SETTINGS.neighbours],
    decay: settings[FITTED_SETTINGS.decay],
  }
}

export function weightsOf({ pairs, neighbours, decay }: Fitted): RankWeights {
  return { ...RANK_WEIGHTS, pairs: pairs / 100, neighbours: neighbours / 100, decay: decay / 100 }
}
