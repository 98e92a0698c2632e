// What the writing tools find out about a call in doubt, where that is certain.
import { createHash } from 'node:crypto'
import { readdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { callTool, sampleCallId, sampleRunId } from '@tallystick/testkit'
import type { JsonObject } from '@tallystick/core/vocabulary'
import * as fc from 'fast-check'
import { describe, expect, it, onTestFinished } from 'vitest'
import { tries } from '../../../../../scripts/testing/effort.ts'
import { sandbox, toolsOver, ways, type Sandbox } from './sandbox.ts'

const key = 'the key'
const runId = sampleRunId(1)
const context = { runId, turn: 1, toolCallId: sampleCallId(runId), context: undefined, idempotencyKey: key }

function boxed(): Sandbox {
  const box = sandbox()
  onTestFinished(() => box.remove())
  return box
}

function toolIn(box: Sandbox, name: string, way = ways[0]) {
  const tool = toolsOver(box, way).find((each) => each.name === name)
  if (tool?.reconcile === undefined) throw new Error(`${name} looks nothing up`)
  return tool
}

async function looked(box: Sandbox, name: string, input: JsonObject, way = ways[0]): Promise<string> {
  const finding = await toolIn(box, name, way).reconcile?.({ ...context, attempt: 1, input })
  return finding?.state ?? 'none'
}

/** The name of a file with a text that a call had not given its name yet. */
const leftName = (ofKey = key): string =>
  `.tallystick-${createHash('sha256').update(ofKey).digest('hex').slice(0, 24)}-0a.tmp`

describe.each(ways)('after a crash, %s', (way) => {
  const look = (box: Sandbox, name: string, input: JsonObject) => looked(box, name, input, way)

  it('a write that the file shows took place, and the model reads so', async () => {
    const box = boxed()
    box.put({ 'in/a.txt': 'one\n' })
    const input = { path: 'in/a.txt', content: 'one\n' }
    const finding = await toolIn(box, 'write_file', way).reconcile?.({ ...context, attempt: 1, input })
    expect(finding).toMatchObject({
      ...{ state: 'done', outcome: 'success' },
      content: [{ text: '"in/a.txt" holds exactly this text. A look after a crash found it.' }],
    })
  })

  it('a write whose text has not taken its name did not take place, and no other answer is certain', async () => {
    const box = boxed()
    const input = { path: 'in/a.txt', content: 'one' }
    expect(await look(box, 'write_file', input)).toBe('unknown')
    expect(await look(box, 'write_file', { ...input, path: '../a.txt' })).toBe('unknown')
    box.put({ [`in/${leftName('another')}`]: 'one' })
    expect(await look(box, 'write_file', input)).toBe('unknown')
    box.put({ [`in/${leftName()}`]: 'one' })
    expect(await look(box, 'write_file', input)).toBe('not_done')
    box.put({ 'in/a.txt': 'other' })
    expect(await look(box, 'write_file', input)).toBe('not_done')
    expect(await look(box, 'write_file', { path: 'b.txt', content: 'one' })).toBe('unknown')
    expect(readdirSync(box.root)).toEqual(['in'])
    box.put({ [`in/deep/${leftName()}`]: 'one' })
    expect(await look(box, 'write_file', { path: 'in/deep/new.txt', content: 'one' })).toBe('not_done')
  })

  it('a write through a link is looked for beside the file that the link leads to', async () => {
    const box = boxed()
    box.put({ 'real/a.txt': 'old', [`real/${leftName()}`]: 'new' })
    symlinkSync('real/a.txt', join(box.root, 'b.txt'))
    expect(await look(box, 'write_file', { path: 'b.txt', content: 'new' })).toBe('not_done')
  })

  it('a call that is made again takes away what it had left', async () => {
    const box = boxed()
    box.put({ [leftName()]: 'o', [leftName('another')]: 'x', 'b.txt': 'one' })
    const again = { idempotencyKey: key, attempt: 2 }
    const first = await callTool(
      toolIn(box, 'write_file', way),
      { path: 'a.txt', content: 'one' },
      { ...again, attempt: 1 },
    )
    expect(first.outcome).toBe('success')
    expect(readdirSync(box.root)).toContain(leftName())
    await callTool(toolIn(box, 'write_file', way), { path: 'a.txt', content: 'one' }, again)
    expect(readdirSync(box.root).toSorted()).toEqual([leftName('another'), 'a.txt', 'b.txt'])
    box.put({ [leftName()]: 'o' })
    await callTool(toolIn(box, 'edit_file', way), { path: 'b.txt', oldText: 'one', newText: 'two' }, again)
    expect(readdirSync(box.root).toSorted()).toEqual([leftName('another'), 'a.txt', 'b.txt'])
  })

  it.each<[string, string, string, string, string]>([
    ['whose oldText is there untouched', 'x one y', 'one', 'two', 'not_done'],
    ['whose oldText an edit may have left in its newText', 'x ones y', 'one', 'ones', 'unknown'],
    ['whose oldText an edit may have left at the end of its newText', 'x none y', 'one', 'none', 'unknown'],
    ['whose oldText an edit may have joined', 'aabb', 'ab', '', 'unknown'],
    ['whose oldText of one letter is there', 'abc', 'b', '', 'not_done'],
    ['whose oldText one newText touches and another does not', 'two one', 'one', 'two', 'not_done'],
    ['whose newText is beside its oldText', 'twoone', 'one', 'two', 'not_done'],
    ['whose newText is after its oldText', 'onetwo', 'one', 'two', 'not_done'],
    ['of which one occurrence was not touched', 'xones one', 'one', 'ones', 'not_done'],
    ['whose oldText is gone', 'x two y', 'one', 'two', 'unknown'],
    ['in a file with other line breaks', 'x\r\none\r\ny', 'x\none', 'z', 'not_done'],
  ])('an edit %s: %j, %j to %j is %s', async (_how, text, ...[oldText, newText, state]) => {
    const box = boxed()
    box.put({ 'a.txt': text })
    expect(await look(box, 'edit_file', { path: 'a.txt', oldText, newText, replaceAll: true })).toBe(state)
  })

  it('an edit whose text has not taken its name did not take place, and of a file that is gone nothing is known', async () => {
    const box = boxed()
    const input = { path: 'a.txt', oldText: 'one', newText: 'two' }
    expect(await look(box, 'edit_file', input)).toBe('unknown')
    box.put({ 'a.txt': 'two', [leftName()]: 'two' })
    expect(await look(box, 'edit_file', input)).toBe('not_done')
  })

  it('a move whose old path is taken and whose new one is free did not take place, and no other answer is certain', async () => {
    const box = boxed()
    const input = { from: 'in/a.txt', to: 'out/b.txt' }
    expect(await look(box, 'move_file', input)).toBe('unknown')
    box.put({ 'in/a.txt': 'one' })
    expect(await look(box, 'move_file', input)).toBe('not_done')
    box.put({ 'out/b.txt': 'one' })
    expect(await look(box, 'move_file', input)).toBe('unknown')
    expect(await look(box, 'move_file', { from: 'in/c.txt', to: 'out/b.txt' })).toBe('unknown')
    expect(await look(box, 'move_file', { from: 'in/c.txt', to: 'out/d.txt' })).toBe('unknown')
    expect(await look(box, 'move_file', { from: 'in/a.txt', to: 'out/d.txt' })).toBe('not_done')
    box.put({ 'in/deep/a.txt': 'one', 'out/deep/b.txt': 'one' })
    expect(await look(box, 'move_file', { from: 'in/deep/a.txt', to: 'out/deep/c.txt' })).toBe('not_done')
    expect(await look(box, 'move_file', { from: 'in/deep/a.txt', to: 'out/deep/b.txt' })).toBe('unknown')
    box.put({ file: 'x', 'a.txt': 'one' })
    expect(await look(box, 'move_file', { from: 'file/a.txt', to: 'out/c.txt' })).toBe('unknown')
  })
})

describe('an edit that took place', () => {
  it('is never said not to have, whatever its texts', async () => {
    const box = boxed()
    const text = (most: number) => fc.string({ unit: fc.constantFrom('a', 'b', '\n'), maxLength: most })
    const edit = fc.record({ oldText: text(3), newText: text(4), replaceAll: fc.boolean() })
    await fc.assert(
      fc.asyncProperty(text(14), edit, async (before, { oldText, ...more }) => {
        fc.pre(oldText !== '')
        box.put({ 'a.txt': before })
        const input = { path: 'a.txt', oldText, ...more }
        const { outcome } = await callTool(toolIn(box, 'edit_file'), input)
        fc.pre(outcome === 'success')
        expect(await looked(box, 'edit_file', input)).toBe('unknown')
      }),
      { numRuns: tries(400) },
    )
  })
})
