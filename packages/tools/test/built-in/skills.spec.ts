// A skill is text that its author wrote for a model. The model sees one line of each until it asks; what it asks for comes from
// within the folder of the skill; and a folder that does not follow the format is refused when the agent is defined.
import { symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { assert, property } from 'fast-check'
import { describe, expect, it, onTestFinished } from 'vitest'
import { ConfigurationError, createRuntime, defineAgent, memoryLedger, joinText } from '@tallystick/core'
import { callTool, scriptedModel } from '@tallystick/testkit'
import { skills, type SkillsOptions } from '@tallystick/tools/skills'
import { tries } from '../../../../scripts/testing/effort.ts'
import { openFiles, sandbox, secret, type Sandbox } from './files/sandbox.ts'
import { anyText } from '../../../../scripts/testing/any-text.ts'

const head = (name: string, description = `Does ${name}. Use it for ${name}.`): string =>
  `---\nname: ${name}\ndescription: ${description}\n---\n`

function filled(files: Readonly<Record<string, string>>): Sandbox {
  const box = sandbox()
  onTestFinished(() => box.remove())
  box.put(files)
  return box
}

const office = {
  'pdf-forms/SKILL.md': `${head('pdf-forms')}\n# Forms\n\nRun scripts/fill.py. Read references/fields.md first.\n`,
  'pdf-forms/references/fields.md': 'name, date\n',
  'pdf-forms/scripts/fill.py': 'print("filled")\n',
  'invoices/SKILL.md': `${head('invoices', '>\n  Writes invoices.\n  Use it to bill.')}Bill them.`,
  'invoices/.hidden': 'nothing',
  'notes/README.md': 'no skill',
}

async function read(options: SkillsOptions, input: object): Promise<{ outcome: string; text: string }> {
  const { tool } = skills(options)
  const { outcome, content } = await callTool(tool, input as never)
  return { outcome, text: joinText(content) }
}

describe('skills', () => {
  it('are listed by name and description, and read by the model when a task needs one', async () => {
    const { root } = filled(office)
    const { list, instructions, tool } = skills({ from: root })
    expect(list.map(({ name, description }) => ({ name, description }))).toEqual([
      { name: 'invoices', description: 'Writes invoices. Use it to bill.' },
      { name: 'pdf-forms', description: 'Does pdf-forms. Use it for pdf-forms.' },
    ])
    expect(instructions.split('\n')).toEqual([
      '# Skills',
      'A skill holds instructions for one kind of task. When a task fits one of these, read the skill with read_skill first, and follow it.',
      '- invoices: Writes invoices. Use it to bill.',
      '- pdf-forms: Does pdf-forms. Use it for pdf-forms.',
    ])
    const model = scriptedModel([
      { toolCalls: [{ name: 'read_skill', input: { name: 'pdf-forms' } }] },
      { toolCalls: [{ name: 'read_skill', input: { name: 'pdf-forms', path: 'references/fields.md' } }] },
      ({ messages }) => ({ text: JSON.stringify(messages) }),
    ])
    const agent = defineAgent({
      name: 'clerk',
      instructions: `Help.\n\n${instructions}`,
      model,
      tools: [tool],
    })
    const { text } = await createRuntime({ ledger: memoryLedger(), agents: [agent] }).run(
      agent,
      'Fill it in.',
    ).result
    expect(model.requests[0]!.instructions).toContain('- invoices: Writes invoices.')
    expect(text).toContain('# Forms')
    expect(text).toContain('name, date')
  })

  it('show their instructions without the head, and the names of their other files', async () => {
    const { root } = filled(office)
    const { outcome, text } = await read({ from: join(root, 'pdf-forms') }, { name: 'pdf-forms' })
    expect(outcome).toBe('success')
    expect(text.split('\n')).toEqual([
      'Skill pdf-forms:',
      'Its other files, to be read with path:',
      '- references/fields.md',
      '- scripts/fill.py',
      '',
      '# Forms',
      '',
      'Run scripts/fill.py. Read references/fields.md first.',
    ])
    expect(text).not.toContain(root)
    const shown = await read({ from: root, showFolders: true }, { name: 'invoices' })
    expect(shown.text).toBe(`Skill invoices:\nIts folder is ${join(root, 'invoices')}\n\nBill them.`)
  })

  it('of which some are chosen are only these, and others are unknown to the tool', async () => {
    const { root } = filled(office)
    expect(skills({ from: root, only: ['invoices'] }).list).toHaveLength(1)
    expect(await read({ from: root, only: ['invoices'] }, { name: 'pdf-forms' })).toMatchObject({
      outcome: 'invalid_input',
    })
    expect(() => skills({ from: root, only: ['invoice'] })).toThrow(/only.*invoices/s)
  })

  it('that are long are shown in parts, with all of them in the end', async () => {
    const lines = Array.from({ length: 200 }, (_, index) => `Step ${index + 1} is to be done.`)
    const { root } = filled({ 'long/SKILL.md': head('long') + lines.join('\n') })
    const seen: string[] = []
    for (let offset: number | undefined = 1; offset !== undefined;) {
      const { text } = await read({ from: root, maxBytes: 1_000 }, { name: 'long', offset })
      expect(Buffer.byteLength(text)).toBeLessThan(1_300)
      const [first = '', ...shown] = text.split('\n')
      seen.push(...shown.map((line) => line.slice(line.indexOf('\t') + 1)))
      const next: string | undefined = /continue with offset (\d+)/i.exec(first)?.[1]
      offset = next === undefined ? undefined : Number(next)
    }
    expect(seen.slice(4)).toEqual(lines)
  })

  it('give nothing outside of their folder, by path or by link', async () => {
    const box = filled(office)
    symlinkSync(join(box.outside, 'secret.txt'), join(box.root, 'pdf-forms', 'link.txt'))
    for (const path of [
      '../invoices/SKILL.md',
      '../../outside/secret.txt',
      'link.txt',
      join(box.outside, 'secret.txt'),
    ]) {
      const { outcome, text } = await read({ from: box.root }, { name: 'pdf-forms', path })
      expect({ path, outcome }).toEqual({ path, outcome: 'failed' })
      expect(text).not.toContain(secret)
    }
  })

  it('are refused with the file and the reason where they do not follow the format', () => {
    const wrong: readonly (readonly [string, RegExp])[] = [
      ['no head', /does not begin with a head/],
      ['---\nname: a\n', /does not begin with a head/],
      ['---\n- a\n---\n', /has to hold name: and description:/],
      ['---\nname: [\n---\n', /its head is not YAML/],
      ['---\na: &a [x]\nb: *a\nname: a\n---\n', /its head is not YAML/],
      ['---\nname: [\n---\n', /its head is not YAML: .*line \d.*\.$/],
      ['---\n\n---\n', /has to hold name: and description:/],
      ['---\na\n---\n', /has to hold name: and description:/],
      [head('1'), /its name has to be/],
      [head('a'.repeat(65)), /its name has to be/],
      [head('A'), /its name has to be/],
      [head('a--b'), /its name has to be/],
      [head('b'), /its name is b, and its folder is called "a"/],
      ['---\nname: a\n---\n', /its description has to be/],
      [head('a', 'x'.repeat(1_025)), /its description has to be/],
    ]
    for (const [text, reason] of wrong) {
      const { root } = filled({ 'a/SKILL.md': text })
      const made = () => skills({ from: root })
      expect(made).toThrow(ConfigurationError)
      expect(made).toThrow(reason)
      expect(made).toThrow(join(root, 'a', 'SKILL.md'))
    }
  })

  it('may have the longest name and description, spaces in it, and a mark before them', () => {
    const [name, words] = ['n'.repeat(64), 'x'.repeat(1_024)]
    const { root } = filled({
      [`${name}/SKILL.md`]: head(name, words),
      'a/SKILL.md': `\ufeff${head('a', '"  Does   \\t it. "')}Do it.`,
      '.hidden/SKILL.md': head('hidden'),
      'big/SKILL.md': `${head('big')}${'x'.repeat(100_000)}`,
    })
    const { list } = skills({ from: [join(root, name), root] })
    expect(list.map((each) => [each.name, each.description])).toEqual([
      ['a', 'Does it.'],
      ['big', 'Does big. Use it for big.'],
      [name, words],
    ])
  })

  it('show other files by lines where that is asked for, and no folder of packages', async () => {
    const { root } = filled({
      'a/SKILL.md': `${head('a')}Do it.`,
      'a/A.md': 'one\ntwo\nthree',
      'a/node_modules/x.js': 'x',
    })
    expect((await read({ from: root }, { name: 'a' })).text.split('\n')).toEqual([
      ...['Skill a:', 'Its other files, to be read with path:', '- A.md', '', 'Do it.'],
    ])
    const { text } = await read({ from: root }, { name: 'a', path: 'A.md', offset: 2 })
    expect(text).toContain('2\ttwo\n3\tthree')
    expect(text).not.toContain('one')
    expect((await read({ from: root }, { name: 'a', offset: 2 })).text).toContain('2\tname: a')
  })

  it.each([
    [50_000, /^Skill a:/],
    [50_001, /^(?!Skill)/],
  ])('of %i bytes are shown whole, or by lines', async (bytes, shown) => {
    const { root } = filled({ 'a/SKILL.md': `${head('a')}${'x'.repeat(bytes)}` })
    expect((await read({ from: root }, { name: 'a' })).text).toMatch(shown)
  })

  it('are what is after the head of a file, or all of it where that has lost its head since', async () => {
    const box = filled({ 'a/SKILL.md': `${head('a')}\n Do it.\n` })
    const { tool } = skills({ from: box.root })
    const body = async (): Promise<string> => joinText((await callTool(tool, { name: 'a' })).content)
    expect(await body()).toMatch(/\n\nDo it\.$/)
    for (const text of [' Do it.', 'Do it.', '---\nDo it.']) {
      box.put({ 'a/SKILL.md': text })
      expect(await body()).toMatch(new RegExp(`\\n\\n${text.trim()}$`))
    }
  })

  it('have options that are checked', () => {
    const { root } = filled(office)
    const made = (more: object) => () => skills({ from: root, ...more })
    expect(made({ maxBytes: 1_000 })).not.toThrow()
    for (const wrong of [{ maxBytes: 999 }, { maxBytes: 1_000.5 }, { toolName: '' }, { showFolders: 1 }])
      expect(made(wrong)).toThrow(`skills: ${Object.keys(wrong)[0]} is `)
    for (const wrong of ['', [''], 1]) expect(made({ from: wrong })).toThrow(/^skills: from/)
    for (const wrong of [[''], 'invoices']) expect(made({ only: wrong })).toThrow(/^skills: only/)
    for (const [other, meant] of Object.entries({
      path: 'from',
      folder: 'from',
      names: 'only',
      include: 'only',
    }))
      expect(made({ [other]: 'x' })).toThrow(`Did you mean ${meant}?`)
    expect(made({ root: 'x' })).toThrow('Did you mean from?')
  })

  it('are refused where a file is in the place of a folder, or a folder in the place of the file', () => {
    const box = filled({ ...office, 'a/SKILL.md/x': '' })
    expect(() => skills({ from: join(box.root, 'notes', 'README.md') })).toThrow(
      /not a folder that can be read/,
    )
    expect(() => skills({ from: join(box.root, 'a') })).toThrow(/is not a skill: it is not a file\.$/)
  })

  it('are refused where a head says one thing in the place of another', () => {
    const box = filled({ 'a/SKILL.md': '---\nname: &same a\ndescription: *same\n---\n' })
    expect(() => skills({ from: box.root })).toThrow(/its head is not YAML/)
  })

  it('leave no file open, and list two hundred of their files', async () => {
    const many = Array.from({ length: 201 }, (_, index) => [`many/${1_000 + index}.md`, ''] as const)
    const box = filled({ 'many/SKILL.md': `${head('many')}Many.`, ...Object.fromEntries(many) })
    const before = openFiles()
    expect(skills({ from: box.root }).list).toHaveLength(1)
    expect(openFiles()).toBeLessThanOrEqual(before)
    const { text } = await read({ from: box.root }, { name: 'many' })
    expect(text.split('\n').filter((line) => line.startsWith('- '))).toHaveLength(200)
  })

  it('are refused where a folder holds no skill, two have one name, or options are misspelt', () => {
    const box = filled({ ...office, 'more/invoices/SKILL.md': head('invoices') })
    expect(() => skills({ from: join(box.root, 'notes') })).toThrow(/there is no skill in/)
    expect(() => skills({ from: join(box.root, 'gone') })).toThrow(/not a folder that can be read/)
    expect(() => skills({ from: [box.root, join(box.root, 'more')] })).toThrow(
      /two skills have the name invoices/,
    )
    expect(skills({ from: [box.root, box.root] }).list).toHaveLength(2)
    expect(() => skills({ form: box.root } as unknown as SkillsOptions)).toThrow(ConfigurationError)
    expect(() => skills({ from: [] })).toThrow(/there is no skill/)
    expect(() => skills({ from: box.root, only: [] })).toThrow(/there is no skill/)
  })

  it('with hostile heads are read as one visible line, or refused', () => {
    assert(
      property(anyText({ maxLength: 80 }), (text) => {
        // oxlint-disable-next-line no-control-regex -- they are what must not be there
        expect(readDescription(text)).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u202e]/)
      }),
      { numRuns: tries(50) },
    )
  })
})

/** The description of a skill whose head holds a text; `refused` where the head is. */
function readDescription(text: string): string {
  try {
    return skills({ from: sandboxWith(text).root }).list[0]!.description
  } catch (error) {
    if (error instanceof ConfigurationError) return 'refused'
    throw error
  }
}

let box: Sandbox | undefined

function sandboxWith(description: string): Sandbox {
  if (box === undefined) {
    const made = (box = sandbox())
    onTestFinished(() => made.remove())
  }
  box.put({ 'a/SKILL.md': head('a', JSON.stringify(description)) })
  return box
}
