import { spawnSync } from 'node:child_process'
import { chmod, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { hostileTexts } from '@tallystick/testkit'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { formatCommand } from '../src/command/context.ts'
import { tallystickHere } from './kit/tallystick.ts'

const isThere = (shell: string): boolean => spawnSync(shell, ['-c', 'true']).status === 0

/** A command line cannot hold NUL, nor half a surrogate pair. */
const texts = [...new Set(hostileTexts.map(({ text }) => text))].filter(
  (text) => text.isWellFormed() && !text.includes('\0'),
)

describe('hostile text in what a shell reads', () => {
  let folder: string
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tallystick-shell-'))
  })
  afterAll(() => rm(folder, { recursive: true, force: true }))

  const run = (shell: string, script: string, environment: NodeJS.ProcessEnv = {}): string => {
    const { stdout, stderr, status } = spawnSync(shell, ['-c', script], {
      ...{ cwd: folder, encoding: 'utf8', env: { ...process.env, LC_ALL: 'C.UTF-8', ...environment } },
    })
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    return stdout
  }

  const missing = isThere('bash') ? '' : ' (skipped: no bash here)'

  // Not every machine has this shell.
  it.skipIf(missing)(
    `is one word of a printed command, whatever it is, and shows all that it is${missing}`,
    async () => {
      const line = formatCommand(String.raw`printf '%s\0'`, ...texts)
      expect(line).not.toMatch(/[\p{C}\p{Zl}\p{Zp}]/u)
      expect(run('bash', line).split('\0').slice(0, -1)).toEqual(texts)
      expect(await readdir(folder)).toEqual([])
    },
  )

  // Not every machine has this shell.
  it.skipIf(missing)(`is completed in bash literally, and runs nothing${missing}`, async () => {
    const lines = texts.flatMap((text) => text.split('\n')).filter((line) => line !== '')
    const { stdout: script } = await tallystickHere('completion', 'bash')
    const bin = await mkdtemp(join(tmpdir(), 'tallystick-bin-'))
    // Stands for a tallystick whose list of runs an attacker has written.
    await writeFile(join(bin, 'lines'), lines.map((line) => `${line}\n`).join(''))
    await writeFile(join(bin, 'tallystick'), `#!/bin/sh\nexec cat '${join(bin, 'lines')}'\n`)
    await chmod(join(bin, 'tallystick'), 0o755)
    await writeFile(join(bin, 'completion'), script)
    await writeFile(join(folder, 'runs.db'), '')
    const words = ['tallystick', 'show', 'runs.db', ''].map((word) => `'${word}'`).join(' ')
    const completed = run(
      'bash',
      `source '${join(bin, 'completion')}'; COMP_WORDS=(${words}); COMP_CWORD=3; _tallystick; printf '%s\\0' "\${COMPREPLY[@]}"`,
      { PATH: `${bin}${delimiter}${process.env['PATH']}` },
    )
    expect(completed.split('\0').slice(0, -1)).toEqual(lines)
    expect(await readdir(folder)).toEqual(['runs.db'])
    await rm(bin, { recursive: true })
  })
})
