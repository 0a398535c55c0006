/**
 * The format numbers of derived databases. Each format has its own file, so that versions of dex that run side by side do not
 * touch each other's files. A new schema needs a new number; a test checks which schema belongs to which number.
 */
export const INDEX_FORMAT = 7
export const KNOWLEDGE_FORMAT = 4
/** Also increase this number if dex counts spending differently. */
export const SPENDING_FORMAT = 1

export const INDEX_FILE = `index-${INDEX_FORMAT}.db`
export const KNOWLEDGE_FILE = `knowledge-${KNOWLEDGE_FORMAT}.db`
export const SPENDING_FILE = `spending-${SPENDING_FORMAT}.db`
