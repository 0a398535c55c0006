import { join } from "node:path"
import type { Agent } from "../agent.ts"
import { variantOf } from "../kit/variant.ts"
import { pi } from "./agent.ts"

export const omp: Agent = variantOf(pi, {
  source: "omp",
  name: "omp",
  basis: "description",
  roots: ({ home }) => [join(home, ".omp", "agent", "sessions")],
  differs: async (parent) => (await import("./omp.ts")).ompDifferences(parent),
})
