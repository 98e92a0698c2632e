import { type TodoItem, todoItemsOf, todoLines, todoListName } from '@tallystick/core/vocabulary'
import type { CallStory } from '../../runs/call-story.ts'

/** What an agent has to do, by its last list that is on record; `undefined` if it keeps none. */
export function lastTodoList(calls: readonly CallStory[]): readonly TodoItem[] | undefined {
  const lists = calls.flatMap(({ name, outcome, content = [] }) => {
    const items = name === todoListName && outcome === 'success' ? todoItemsOf(content) : undefined
    return items === undefined ? [] : [items]
  })
  return lists.at(-1)
}

/** That list, in rows. */
export function todoRows(calls: readonly CallStory[]): readonly (readonly string[])[] {
  const items = lastTodoList(calls) ?? []
  return items.length === 0 ? [] : todoLines(items).map((line, index) => [index === 0 ? 'to do' : '', line])
}
