import { agent as notebook } from "./agent.mjs"

// Takes all the memory that its thread has.
const parse = () => {
  const kept = []
  for (;;) kept.push(new Array(1e6).fill(Math.random()))
}

export const agent = {
  ...notebook,
  source: "greedy",
  connector: async () => ({ ...(await notebook.connector()), source: "greedy", parse }),
}
