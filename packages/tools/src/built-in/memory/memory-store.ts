/** The owner of memories. All memories of an owner can be erased together, and so can all about a subject. */
export interface MemoryOwner {
  /** Names the owner within the store. Memories of one owner are never shown to another. */
  readonly owner: string
  /** The subject of the runs that saved them. */
  readonly subject?: string | undefined
}

/** A text that is remembered. */
export interface Memory {
  /** 1, 2, 3 … for each owner; an id is not reused while the owner has memories. */
  readonly id: number
  readonly text: string
  /** When it was saved, in milliseconds since 1970 UTC. */
  readonly at: number
}

/** A memory to save. A store saves one for each key; a later one with the same key has no effect. */
export interface NewMemory {
  readonly key: string
  readonly text: string
  readonly at: number
  /** How many memories the owner may have. */
  readonly max: number
}

/** The words to search for; of a phrase, each directly after the one before. The last word of each may continue. */
export type SearchPhrases = readonly (readonly string[])[]

/** The owner or the subject whose memories are erased. */
export type Erased = { readonly subject: string } | { readonly session: string } | { readonly owner: string }

/**
 * Keeps memories. `sqliteMemory` and `postgresMemory` make one; any other store has to keep the promises of each member.
 * Several processes may use one at the same time.
 */
export interface MemoryStore {
  /**
   * Saves a memory. If the key was used before, returns the memory that was saved then, even if it was removed since.
   * Returns `full` if the owner has as many memories as allowed.
   */
  save(owner: MemoryOwner, memory: NewMemory): Promise<Memory | 'full'>
  /** Returns the memory that was saved under a key, even if it was removed since. */
  savedUnder(owner: MemoryOwner, key: string): Promise<Memory | undefined>
  /**
   * Removes a memory for good, and remembers the key; returns `true` again for the same key. Returns `false` if no
   * memory has the id.
   */
  remove(owner: MemoryOwner, id: number, key: string): Promise<boolean>
  /** Whether a memory was removed under the key. */
  wasRemovedUnder(owner: MemoryOwner, key: string): Promise<boolean>
  /** Memories that have one of the phrases, the best first. */
  search(owner: MemoryOwner, phrases: SearchPhrases, limit: number): Promise<readonly Memory[]>
  /** The newest memories first, or those before one. */
  list(owner: MemoryOwner, limit: number, before?: number): Promise<readonly Memory[]>
  /** Erases all memories of an owner or about a subject, without leaving a trace. Returns how many. */
  erase(erased: Erased): Promise<number>
  /** Closes the store. */
  close(): Promise<void>
}

/** The owner that a session or a subject is, within a store. */
export const ownerName = {
  session: (session: string): string => `session:${session}`,
  subject: (subject: string): string => `subject:${subject}`,
  own: (name: string): string => `own:${name}`,
} as const

/** What a store erases: the memories of an owner, and those about a subject. */
export function erasedOwner(erased: Erased): { readonly owner: string; readonly subject: string | null } {
  if ('subject' in erased) return { owner: ownerName.subject(erased.subject), subject: erased.subject }
  if ('session' in erased) return { owner: ownerName.session(erased.session), subject: null }
  return { owner: ownerName.own(erased.owner), subject: null }
}
