import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Tool } from '@tallystick/core'
import { callTool } from '@tallystick/core/testing'
import { filesTools } from '@tallystick/tools/files'
import { describe, expect, it, onTestFinished } from 'vitest'
import { pictureOf, sandbox } from './sandbox.ts'

/** A folder `full` with three entries, and what moves it where no more than so many may be looked at. */
async function moving(maxVisited: number): Promise<{ outcome: string; text: string; root: string }> {
  const box = sandbox()
  onTestFinished(() => box.remove())
  box.put({ 'full/a.txt': 'a', 'full/inner/b.txt': 'b' })
  const tools: readonly Tool[] = filesTools({ root: box.root, write: true, maxVisited })
  const move = tools.find(({ name }) => name === 'move_file')
  if (move === undefined) throw new Error('there is no tool that moves')
  const { outcome, text } = await callTool(move, { from: 'full', to: 'other' })
  return { outcome, text, root: box.root }
}

describe('move_file of a folder', () => {
  it('given as many entries as may be looked at, when it is moved, then all of it goes', async () => {
    const { outcome, root } = await moving(3)
    expect(outcome).toBe('success')
    expect(existsSync(join(root, 'other/inner/b.txt'))).toBe(true)
  })

  it('given one more, when it is moved, then nothing is, and the model reads what to do', async () => {
    const { outcome, text, root } = await moving(2)
    expect({ outcome, text }).toEqual({
      outcome: 'failed',
      text: '"full" holds more than 2 entries, too many to move. Move folders within it.',
    })
    expect(pictureOf(root).filter((line) => line.startsWith('full'))).toHaveLength(4)
  })
})
