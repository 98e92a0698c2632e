import { spawnSync } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { tallystickHere } from './kit/tallystick.ts'

const isThere = (shell: string): boolean => spawnSync(shell, ['-c', 'true']).status === 0

/** The words that the help of the whole command names as verbs. */
async function verbsOfHelp(): Promise<readonly string[]> {
  const { stdout } = await tallystickHere('--help')
  return [...stdout.matchAll(/^ {2}([a-z]+) {2,}/gm)].flatMap(([, name = '']) =>
    name === 'help' ? [] : [name],
  )
}

describe('help', () => {
  it('shows of every verb an example that the verb would take', async () => {
    const verbs = await verbsOfHelp()
    expect(verbs).toEqual(expect.arrayContaining(['run', 'list', 'tail', 'stats', 'completion', 'import']))
    for (const verb of verbs) {
      const { code, stdout } = await tallystickHere(verb, '--help')
      expect(code).toBe(0)
      const [, example = ''] = /\nExample:\n {2}(.+)\n$/.exec(stdout) ?? []
      expect(example).toContain(`tallystick ${verb} `)
      // Every option that the example uses is one that the help tells of.
      for (const [option] of example.matchAll(/--[\w-]+/g)) {
        expect(stdout).toMatch(new RegExp(`^ {2}${option} `, 'm'))
      }
    }
  })
})

describe('completion', () => {
  let folder: string
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tallystick-completion-'))
    for (const shell of ['bash', 'zsh', 'fish']) {
      const { stdout } = await tallystickHere('completion', shell)
      await writeFile(join(folder, `tallystick.${shell}`), stdout)
    }
    await writeFile(join(folder, 'my runs.db'), '')
  })
  afterAll(() => rm(folder, { recursive: true }))

  const run = (shell: string, script: string): readonly string[] => {
    const { stdout, stderr, status } = spawnSync(shell, ['-c', script], { cwd: folder, encoding: 'utf8' })
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    return stdout.split('\n').filter((line) => line !== '')
  }

  it('is a 2 for a shell that it does not know', async () => {
    const { code, stderr } = await tallystickHere('completion', 'csh')
    expect(code).toBe(2)
    expect(stderr).toContain('Allowed choices are bash, zsh, fish')
  })

  // Not every machine has this shell.
  describe.skipIf(!isThere('bash'))('in bash', () => {
    const complete = (...words: readonly string[]): readonly string[] =>
      run(
        'bash',
        `source ./tallystick.bash; COMP_WORDS=(${['tallystick', ...words].map((word) => `'${word}'`).join(' ')}); COMP_CWORD=${words.length}; _tallystick; printf '%s\\n' "\${COMPREPLY[@]}"`,
      )

    it('completes verbs, options, their values, files and runs, each in its place', async () => {
      expect(complete('')).toEqual(await verbsOfHelp())
      expect(complete('res')).toEqual(['resume'])
      expect(complete('list', '--s')).toEqual(['--session', '--status', '--since'])
      expect(complete('list', 'my runs.db', '--status', 'in')).toEqual(['in_flight', 'interrupted'])
      expect(complete('show', 'my')).toEqual(['my runs.db'])
      expect(complete('show', '--at', '3', 'my')).toEqual(['my runs.db'])
      expect(complete('show', 'my runs.db', '')).toEqual(['latest'])
      expect(complete('resume', 'my runs.db', 'latest', '--config', 'my')).toEqual(['my runs.db'])
      expect(complete('deny', 'my runs.db', 'latest', 'c', '--reason', '')).toEqual([])
      expect(complete('completion', '')).toEqual(['bash', 'zsh', 'fish'])
    })
  })

  // Not every machine has this shell.
  describe.skipIf(!isThere('fish'))('in fish', () => {
    const complete = (line: string): readonly string[] =>
      run('fish', `source ./tallystick.fish; complete -C '${line}'`).map(
        (found) => found.split('\t')[0] ?? '',
      )

    it('completes verbs, options, their values, files and runs', async () => {
      expect(complete('tallystick ').toSorted()).toEqual([...(await verbsOfHelp())].sort())
      expect(complete('tallystick list --s')).toEqual(['--session', '--since', '--status'])
      expect(complete('tallystick list --status in').toSorted()).toEqual(['in_flight', 'interrupted'])
      expect(complete('tallystick show my')).toEqual(['my runs.db'])
      expect(complete('tallystick show x.db la')).toEqual(['latest'])
      expect(complete('tallystick completion ')).toEqual(['bash', 'fish', 'zsh'])
    })
  })

  // Not every machine has this shell.
  describe.skipIf(!isThere('zsh'))('in zsh', () => {
    /** What Tab makes of lines in a terminal: a key behind it has zsh print what stands on its line then. */
    const complete = (...lines: readonly string[]): readonly string[] =>
      run(
        'zsh',
        String.raw`zmodload zsh/zpty; zpty shell 'PS1="" zsh -f -i'
          zpty -w shell 'autoload -U compinit; compinit -u -d ./dump; source ./tallystick.zsh; show() { print -r -- "<<$BUFFER>>"; zle .kill-buffer }; zle -N show; bindkey "^X" show; print REA""DY'
          zpty -r -m shell out '*READY*'
          for line in ${lines.map((line) => `'${line}'`).join(' ')}; do
            zpty -w -n shell "$line"$'\t\C-x'; zpty -r -m shell out '*<<*>>*'; print -r -- "${'$'}{${'$'}{out##*<<}%%>>*}"
          done`,
      ).map((line) => line.trimEnd())

    it('completes verbs, options, their values, files and runs', () => {
      const lines = [
        'sta',
        'list --stat',
        'list x.db --status susp',
        'show my',
        'show x.db la',
        'completion zs',
      ]
      expect(complete(...lines.map((line) => `tallystick ${line}`))).toEqual([
        'tallystick stats',
        'tallystick list --status',
        'tallystick list x.db --status suspended',
        'tallystick show my\\ runs.db',
        'tallystick show x.db latest',
        'tallystick completion zsh',
      ])
    })
  })
})
