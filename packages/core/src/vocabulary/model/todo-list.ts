import { type ResultPart, textOf } from './content.ts'

/** Name of the tool that keeps the list of what an agent has to do. */
export const todoListName = 'todo_list'

/** What can be said of an item. */
export const todoStates = ['open', 'under_way', 'done'] as const
export type TodoState = (typeof todoStates)[number]

/** One thing to do. */
export interface TodoItem {
  readonly text: string
  readonly state: TodoState
}

/** The list that a result of `todo_list` holds; `undefined` for any other content. */
export function todoItemsOf(content: readonly ResultPart[]): readonly TodoItem[] | undefined {
  const { items } = Object(parsed(textOf(content))) as { readonly items?: unknown }
  return Array.isArray(items) && items.every(isItem) ? items : undefined
}

/** A list as lines: how much is done, then each item. */
export function todoLines(items: readonly TodoItem[]): readonly [string, ...string[]] {
  const done = items.filter(({ state }) => state === 'done').length
  return [`${done} of ${items.length} done`, ...items.map(({ text, state }) => `${marks[state]} ${text}`)]
}

const marks: { readonly [State in TodoState]: string } = { open: '[ ]', under_way: '[>]', done: '[x]' }

function isItem(item: unknown): item is TodoItem {
  const { text, state } = Object(item) as Partial<Record<string, unknown>>
  return typeof text === 'string' && todoStates.some((known) => known === state)
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
