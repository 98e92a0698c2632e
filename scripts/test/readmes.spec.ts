// Every program of every README runs as it is pasted, with what the README's own line installs and nothing else.
import { execFile } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

const repository = join(import.meta.dirname, '../..')
const packages = readdirSync(join(repository, 'packages'))
const readmes = ['README.md', ...packages.map((name) => `packages/${name}/README.md`)]
const run = promisify(execFile)

/** What Anthropic's wire says to any question. */
const reply = [
  {
    type: 'message_start',
    message: {
      id: 'msg_1',
      role: 'assistant',
      content: [],
      model: 'claude-opus-4-8',
      usage: { input_tokens: 9, output_tokens: 1 },
    },
  },
  { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
  { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'It is 21 °C.' } },
  { type: 'content_block_stop', index: 0 },
  { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 6 } },
  { type: 'message_stop' },
]

let vendor: Server
const folders: string[] = []
beforeAll(async () => {
  vendor = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    for (const event of reply) response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
    response.end()
  })
  await new Promise<void>((resolve) => vendor.listen(0, '127.0.0.1', resolve))
})
afterAll(() => {
  vendor.close()
  for (const folder of folders) rmSync(folder, { recursive: true })
})

/** A package as pnpm has it for one of ours. */
function placeOf(name: string): string {
  const own = /^@tallystick\/(.+)$/.exec(name)?.[1]
  if (own !== undefined) return join(repository, 'packages', own)
  const homes = packages.map((each) => join(repository, 'packages', each, 'node_modules', name))
  const found = homes.find((home) => existsSync(home))
  if (found === undefined) throw new Error(`No package of ours knows ${name}.`)
  return realpathSync(found)
}

/** A folder in which the packages of an installing line are there, and no others. */
function installed(line: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'readme-'))
  folders.push(folder)
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
  for (const name of line.split(' ')) {
    const link = join(folder, 'node_modules', name)
    mkdirSync(dirname(link), { recursive: true })
    symlinkSync(placeOf(name), link)
  }
  return folder
}

describe.each(readmes)('%s', (path) => {
  const text = readFileSync(join(repository, path), 'utf8')
  const programs = [...text.matchAll(/```(?:ts|js)\n(.*?)```/gs)].map(([, program = '']) => program)
  const [, line = ''] = /```sh\nnpm install ([^#\n]+?)(?: #.*)?\n```/.exec(text) ?? []

  it('says what to install before its first program', () => {
    expect(line).toContain('@tallystick/core')
    expect(text.indexOf('npm install ')).toBeLessThan(text.indexOf('```ts'))
  })

  it('has links that lead somewhere from a page of the registry as well', () => {
    const links = [...text.matchAll(/\]\(([^)]+)\)/g)].map(([, link = '']) => link)
    // The page of the repository alone is not published.
    const relative = links.filter((link) => path !== 'README.md' && !/^(https:|#)/.test(link))
    expect(relative).toEqual([])
    const ours = /^https:\/\/github\.com\/tallystick\/tallystick\/(?:blob|tree)\/main\/([^#]+)/
    const places = links.flatMap((link) => ours.exec(link)?.[1] ?? [])
    expect(places.filter((place) => !existsSync(join(repository, place)))).toEqual([])
  })

  it('has programs that run one after the other as they are pasted', async () => {
    expect(programs.length).toBeGreaterThan(0)
    const folder = installed(line)
    const { port } = vendor.address() as AddressInfo
    const env = {
      ...process.env,
      ANTHROPIC_API_KEY: 'a key of nobody',
      ANTHROPIC_BASE_URL: `http://127.0.0.1:${port}`,
    }
    for (const [index, program] of programs.entries()) {
      const file = join(folder, `program-${index + 1}.ts`)
      writeFileSync(file, program)
      const { stderr, stdout } = await run(process.execPath, ['--no-warnings', file], { cwd: folder, env })
      expect({ program, stderr }).toEqual({ program, stderr: '' })
      expect(stdout).not.toMatch(/model_failed|Error/)
    }
  })
})
