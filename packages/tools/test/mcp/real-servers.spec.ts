import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createRuntime, defineAgent, memoryLedger, joinText } from '@tallystick/core'
import { checkLaws, scriptedModel } from '@tallystick/testkit'
import { type McpManager, mcpTools } from '@tallystick/tools/mcp'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { realServer } from './servers/real-servers.ts'

const folder = mkdtempSync(join(tmpdir(), 'tallystick-mcp-'))
let mcp: McpManager
beforeAll(async () => {
  writeFileSync(join(folder, 'notes.txt'), 'the first note')
  mcp = await mcpTools({
    servers: {
      everything: realServer('everything'),
      files: realServer('filesystem', [folder], { trusted: true }),
      memory: realServer('memory', [], { env: { MEMORY_FILE_PATH: join(folder, 'memory.json') } }),
      thinking: realServer('sequential-thinking'),
      broken: { command: 'no-such-command' },
    },
  })
})
afterAll(async () => {
  await mcp.close()
  rmSync(folder, { recursive: true })
})

describe('servers that others wrote', () => {
  it('are ready side by side, and the broken one is named', () => {
    expect(mcp.servers).toMatchObject([
      { name: 'everything', state: 'ready', transport: 'stdio', protocolVersion: '2025-11-25', tools: 13 },
      { name: 'files', state: 'ready', tools: 14 },
      { name: 'memory', state: 'ready', tools: 9 },
      { name: 'thinking', state: 'ready', tools: 1 },
      {
        name: 'broken',
        state: 'failed',
        tools: 0,
        faults: [expect.stringContaining('"no-such-command" was not found')],
      },
    ])
    expect(mcp.tools).toHaveLength(37)
  })

  it('are believed about what only reads where they are trusted, and are writes else', () => {
    const effects = new Map(mcp.tools.map(({ name, effect, recovery }) => [name, `${effect} ${recovery}`]))
    expect(effects.get('mcp__files__read_text_file')).toBe('read rerun')
    expect(effects.get('mcp__files__move_file')).toBe('write report')
    expect(effects.get('mcp__everything__get-sum')).toBe('write report')
  })

  it('work in a run, whose ledger says where each tool comes from', async () => {
    const model = scriptedModel([
      {
        toolCalls: [
          { name: 'mcp__files__read_text_file', input: { path: join(folder, 'notes.txt') } },
          { name: 'mcp__everything__trigger-long-running-operation', input: { duration: 0.01, steps: 2 } },
          { name: 'mcp__everything__get-sum', input: { a: 'one', b: 2 } },
          { name: 'mcp__memory__read_graph', input: {} },
        ],
      },
      { text: 'Done.' },
    ])
    const agent = defineAgent({ name: 'reader', instructions: 'Read.', model, tools: mcp.tools })
    const run = createRuntime({ ledger: memoryLedger(), agents: [agent] }).run(agent, 'Read the notes.')
    const events = []
    for await (const event of run) events.push(event)
    expect(checkLaws(events)).toEqual([])
    const results = events.flatMap((event) =>
      event.type === 'tool_result' ? [`${event.outcome}: ${joinText(event.content).split('\n')[0]}`] : [],
    )
    expect(results.sort()).toEqual([
      'invalid_input: The input does not fit the schema of mcp__everything__get-sum. Nothing was run. Correct it and call the tool again:',
      'success: Long running operation completed. Duration: 0.01 seconds, Steps: 2.',
      'success: the first note',
      expect.stringMatching(/^success: \{/),
    ])
    expect(events.some((event) => event.type === 'tool_progress')).toBe(true)
    const [started] = events
    const recorded = started?.type === 'run_started' ? (started.definition.policy?.tools ?? []) : []
    expect(recorded.map(({ name, origin }) => [name, origin])).toContainEqual([
      'mcp__files__read_text_file',
      { server: 'files', name: 'read_text_file' },
    ])
  })

  it('show resources and prompts', async () => {
    const resources = await mcp.resources('everything')
    const dynamic = resources.find(({ isTemplate, uri }) => isTemplate && uri.includes('text'))
    expect(dynamic?.uri).toBe('demo://resource/dynamic/text/{resourceId}')
    expect(joinText(await mcp.readResource('everything', 'demo://resource/dynamic/text/1'))).toMatch(
      /^Resource 1/,
    )
    expect(await mcp.prompts('everything')).toContainEqual(
      expect.objectContaining({
        name: 'args-prompt',
        arguments: expect.arrayContaining([
          expect.objectContaining({ name: 'city', required: true }),
        ]) as unknown,
      }),
    )
    const { messages } = await mcp.getPrompt('everything', 'args-prompt', { city: 'Seoul' })
    expect(messages).toMatchObject([
      { role: 'user', content: [{ type: 'text', text: "What's weather in Seoul?" }] },
    ])
  })

  it('answer with structure, images and links', async () => {
    const structured = await mcp.call('everything', 'get-structured-content', { location: 'New York' })
    expect(structured).toHaveLength(1)
    expect(JSON.parse(joinText(structured))).toEqual({ temperature: 33, conditions: 'Cloudy', humidity: 82 })
    expect(await mcp.call('everything', 'get-tiny-image', {})).toContainEqual(
      expect.objectContaining({ type: 'image', mediaType: 'image/png' }),
    )
    expect(joinText(await mcp.call('everything', 'get-resource-links', { count: 1 }))).toContain(
      'demo://resource/',
    )
  })

  it('are named with what they have where a caller errs', async () => {
    await expect(mcp.call('files', 'read_txt_file', {})).rejects.toThrow('Did you mean read_text_file')
    await expect(mcp.call('filez', 'read_text_file', {})).rejects.toThrow(
      'There is no MCP server "filez" here. Did you mean files?',
    )
    await expect(mcp.call('broken', 'anything', {})).rejects.toThrow(
      'has no tool "anything". It offers nothing.',
    )
  })
})
