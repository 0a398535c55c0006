import { workerData } from "node:worker_threads"
import { openStore } from "../../src/store/history/sqlite-history.ts"
import { openIndex } from "../../src/store/index/search-index.ts"
import { conversation, textMessage, unit } from "./conversations.ts"

// A thread that writes to an index while the test reads it. Ends when everything is written.

const { history, index: path, rounds } = workerData as { history: string; index: string; rounds: number }
const store = openStore(history)
for (let round = 0; round < rounds; round++) {
  const text = `narwhal ${Array.from({ length: 400 }, (_, i) => `w${(i * 7919 * (round + 1)) % 9973}`).join(" ")}`
  await store.writeUnit(unit(`n${round}`, [conversation(`n${round}`, [textMessage(`n${round}`, text)])]))
  const index = openIndex(path)
  await index.follow(store)
  index.checkpoint()
  index.close()
}
store.close()
