import { todoLines, type TodoItem } from '@tallystick/core/vocabulary'

/** The last list that is on record of what an agent has to do, in rows. */
export function todoRows(items: readonly TodoItem[] = []): readonly (readonly string[])[] {
  return items.length === 0 ? [] : todoLines(items).map((line, index) => [index === 0 ? 'to do' : '', line])
}
