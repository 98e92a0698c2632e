import type { Ledger, RunId } from '@tallystick/core'
import { readStart } from '@tallystick/core/internal'
import { ToolError } from '../../define/outcome.ts'
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

/** A store erases the memories of an owner and those about a subject. */
export function readErasedOwner(erased: Erased): { readonly owner: string; readonly subject: string | null } {
  if ('subject' in erased) return { owner: `subject:${erased.subject}`, subject: erased.subject }
  if ('session' in erased) return { owner: `session:${erased.session}`, subject: null }
  return { owner: `own:${erased.owner}`, subject: null }
}

/** Bounds of a query, and of one word. */
const maxPhrases = 16
const maxWordsOfPhrase = 16
const maxWordBytes = 192
/** A shorter word has to be there as it is: as a beginning it would be that of too many. */
const leastBeginning = 3

/** Scripts that put no space between words: each of their characters is searched as a word. */
const unspaced = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]/gu

/**
 * The words of a text as a store indexes them: without case and accents, and each written as `w` and the hexadecimal digits of
 * its UTF-8. So no text has a meaning in the query language of a store, and all stores agree about what a word is.
 */
export function listIndexWords(text: string): readonly string[] {
  return readPlainWords(text).flatMap(readWords).map(writeWord)
}

/** The phrases of a query, in the form of `listIndexWords`. */
export function toSearchPhrases(query: string): SearchPhrases {
  const words = [...new Set(readPlainWords(query))].slice(0, maxPhrases)
  return words.map((word) => readWords(word).slice(0, maxWordsOfPhrase).map(writeWord))
}

/** True if a word may be the beginning of a longer one, by its written form. */
export function mayContinue(word: string): boolean {
  return word.length > 2 * leastBeginning
}

function readPlainWords(text: string): readonly string[] {
  const plain = text.normalize('NFKD').replaceAll(/\p{M}/gu, '').toLowerCase()
  return plain.match(/[\p{L}\p{N}]+/gu) ?? []
}

function readWords(word: string): readonly string[] {
  return word.replaceAll(unspaced, ' $& ').split(' ').filter(Boolean)
}

function writeWord(word: string): string {
  return `w${Buffer.from(word).subarray(0, maxWordBytes).toString('hex')}`
}

/** More links between a run and the one that has the session than any family of runs needs. */
const maxLinks = 50

/** The owner that a run on record says: its subject, or its session. A child run has the session of its parent. */
export async function readRecordedOwner(
  ledger: Pick<Ledger, 'read'>,
  runId: RunId,
  per: 'subject' | 'session',
): Promise<MemoryOwner> {
  const start = await readStart(ledger, runId)
  const subject = start?.subject
  if (per === 'subject') {
    if (subject === undefined) throw createUnowned('subject', 'subject')
    return { owner: `subject:${subject}`, subject }
  }
  let run = start
  for (let links = 0; run && run.sessionId === undefined && links < maxLinks; links++) {
    run = run.parent && (await readStart(ledger, run.parent.runId))
  }
  if (run?.sessionId === undefined) throw createUnowned('session', 'sessionId')
  return { owner: `session:${run.sessionId}`, subject }
}

function createUnowned(per: 'subject' | 'session', option: string): ToolError {
  return new ToolError(
    `Nothing can be remembered here: this run has no ${per}. The application has to start it with ${option}.`,
  )
}
