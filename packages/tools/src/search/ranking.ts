import type { Tool } from '@tallystick/core'
import { wordsOf } from './words.ts'

/** Finds tools by words. */
export interface ToolIndex {
  /** Returns the names of the tools that have any of the words, the best first. */
  find(query: string): readonly string[]
}

/** How much more a word counts in a name than in a description, and how much less where only its input has it. */
const weights = { name: 3, description: 1, input: 0.5 }

/** The usual constants of BM25: how soon more of the same word counts no more, and how much long texts lose. */
const saturation = 1.2
const lengthShare = 0.75

/** How much a word counts that begins with the asked one, or that the asked one begins with. */
const shareOfBeginning = 0.5
const leastBeginning = 3

/** The words of one tool, with their weights. */
interface Entry {
  readonly name: string
  readonly words: ReadonlyMap<string, number>
  readonly length: number
}

/** Makes an index over the names, descriptions and inputs of tools, which ranks by BM25. */
export function toolIndex(tools: readonly Pick<Tool, 'name' | 'description' | 'inputSchema'>[]): ToolIndex {
  const entries = tools.map(entryOf)
  const meanLength = entries.reduce((sum, { length }) => sum + length, 0) / entries.length
  const counts = new Map<string, number>()
  for (const { words } of entries)
    for (const word of words.keys()) counts.set(word, (counts.get(word) ?? 0) + 1)

  const rarity = (word: string): number => {
    const count = counts.get(word) as number
    return Math.log((entries.length + 1) / (count + 0.5))
  }
  const score = ({ words, length }: Entry, asked: ReadonlyMap<string, number>): number => {
    const norm = saturation * (1 - lengthShare + (lengthShare * length) / meanLength)
    let sum = 0
    for (const [word, share] of asked) {
      const weight = words.get(word) ?? 0
      sum += (share * rarity(word) * weight) / (weight + norm)
    }
    return sum
  }
  return {
    find(query) {
      const asked = askedWords(query, counts)
      const exact = query.trim().toLowerCase()
      return entries
        .map((entry) => ({
          name: entry.name,
          score: entry.name.toLowerCase() === exact ? Number.MAX_VALUE : score(entry, asked),
        }))
        .filter((found) => found.score > 0)
        .toSorted((a, b) => b.score - a.score)
        .map(({ name }) => name)
    },
  }
}

function entryOf({
  name,
  description,
  inputSchema,
}: Pick<Tool, 'name' | 'description' | 'inputSchema'>): Entry {
  const words = new Map<string, number>()
  const add = (text: string, weight: number): void => {
    for (const word of wordsOf(text)) words.set(word, (words.get(word) ?? 0) + weight)
  }
  add(name, weights.name)
  add(description, weights.description)
  add(Object.keys(Object(inputSchema['properties']) as object).join(' '), weights.input)
  return { name, words, length: [...words.values()].reduce((sum, weight) => sum + weight, 0) }
}

/** The words of the index that are asked for: each one itself, or where no tool has it, those that share its beginning. */
function askedWords(query: string, known: ReadonlyMap<string, number>): ReadonlyMap<string, number> {
  const asked = new Map<string, number>()
  for (const word of wordsOf(query)) {
    if (known.has(word)) {
      asked.set(word, 1)
      continue
    }
    for (const other of known.keys()) {
      if (sharesBeginning(word, other)) asked.set(other, Math.max(shareOfBeginning, asked.get(other) ?? 0))
    }
  }
  return asked
}

function sharesBeginning(one: string, other: string): boolean {
  if (Math.min(one.length, other.length) < leastBeginning) return false
  return one.startsWith(other) || other.startsWith(one)
}
