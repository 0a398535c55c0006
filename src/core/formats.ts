/**
 * How what is derived is kept. Each way has its own file: versions of dex that run side by side leave each other's alone.
 * Another schema, another number; a test knows which schema belongs to which.
 */
export const INDEX_FORMAT = 5
export const KNOWLEDGE_FORMAT = 3
/** Also another number where what was spent is counted in another way. */
export const SPENDING_FORMAT = 1

export const INDEX_FILE = `index-${INDEX_FORMAT}.db`
export const KNOWLEDGE_FILE = `knowledge-${KNOWLEDGE_FORMAT}.db`
export const SPENDING_FILE = `spending-${SPENDING_FORMAT}.db`
