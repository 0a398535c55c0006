import type { Format } from "../../core/format.ts"

/** How much of a conversation a model is shown: what was said, or only what the person said. */
export const MAP_FORMATS = ["stripped", "user_only"] as const satisfies readonly Format[]
export type MapFormat = (typeof MAP_FORMATS)[number]
