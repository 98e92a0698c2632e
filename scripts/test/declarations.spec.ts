import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { writeDeclarations } from '../bundle/declarations.ts'

const lib = { lib: ['es2020'], types: [], skipLibCheck: true }
const compilerOptions = { rootDir: 'src', outDir: 'dist', composite: true, module: 'nodenext', ...lib }
let home: string
const write = (path: string, text: string): void => {
  mkdirSync(dirname(join(home, path)), { recursive: true })
  writeFileSync(join(home, path), text)
}
const declaration = (): string => readFileSync(join(home, 'dist/tea/price.d.ts'), 'utf8')

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'tallystick-declarations-'))
  onTestFinished(() => rmSync(home, { recursive: true }))
  write('package.json', '{ "type": "module" }')
  write('tsconfig.json', JSON.stringify({ compilerOptions, include: ['src'] }))
  write('src/tea/price.ts', 'export const price = 5')
})

describe('the declarations of a package that is packed', () => {
  it('are written where nothing was built, and where some were deleted', () => {
    writeDeclarations(home)
    expect(declaration()).toContain('price = 5')
    rmSync(join(home, 'dist'), { recursive: true })
    writeDeclarations(home)
    expect(declaration()).toContain('price = 5')
  })

  it('are those of the sources as they are now', () => {
    write('src/tea/old.ts', 'export const old = 1')
    writeDeclarations(home)
    rmSync(join(home, 'src/tea/old.ts'))
    write('src/tea/price.ts', 'export const price = 6')
    writeDeclarations(home)
    expect(declaration()).toContain('price = 6')
    expect(existsSync(join(home, 'dist/tea/old.d.ts'))).toBe(false)
  })

  it('are demanded: a package whose sources do not compile, or are left out, is not packed', () => {
    write(
      'tsconfig.json',
      JSON.stringify({ compilerOptions, include: ['src'], exclude: ['src/tea/none.ts'] }),
    )
    write('src/tea/none.ts', '')
    expect(() => writeDeclarations(home)).toThrow('dist/tea/none.d.ts was not written')
    write('src/tea/price.ts', "export const price: number = 'five'")
    expect(() => writeDeclarations(home)).toThrow('tsc -b, which writes its declarations, failed')
  })
})
