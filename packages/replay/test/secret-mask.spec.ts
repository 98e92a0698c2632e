import { ConfigurationError } from '@tallystick/core'
import { hostileTexts, createRepeatedTexts } from '@tallystick/testkit'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import '../../../scripts/testing/seed.ts'
import { toComment, requireIdentifier, toStringLiteral } from '../src/regression.ts'
import { SecretMask, isPlainlySecret, isSecretName } from '../src/secrets.ts'

const mask = new SecretMask()
/** Puts a key together, so that no scanner takes this file for one that leaks. */
const glued = (...parts: readonly string[]): string => parts.join('')
const key = glued('sk-', 'ant-api03-abcdefghij0123456789')
const jwt = ['eyJhbGciOiJIUzI1NiJ9', 'eyJzdWIiOiIxMjM0In0', 'c2lnbmF0dXJl'].join('.')

describe('what looks like a secret', () => {
  it.each([
    [`use ${key}, please`, key],
    [`the token ${jwt} was sent`, jwt],
    [glued('gh', 'p_', 'a1B2'.repeat(9)), 'a1B2a1B2'],
    [glued('github', '_pat_', 'a1B2_'.repeat(6)), 'a1B2_a1B2'],
    [glued('id AK', 'IA', 'ABCDEFGHIJKLMNOP in us-east-1'), 'ABCDEFGHIJKLMNOP'],
    [glued('xox', 'b-', '123456789012-abcdef'), '123456789012-abcdef'],
    [glued('sk_', 'live_', 'abcdefghijklmnop'), 'abcdefghijklmnop'],
    ['Authorization: Basic dXNlcjpwYXNz and more\nnext', 'dXNlcjpwYXNz'],
    ['curl -H "x-api-key: 0123-abc" https://example.com', '0123-abc'],
    ['Cookie: a=1; session=very-private\r\nHost: x', 'very-private'],
    ['sent with Bearer abcdefgh12345678.', 'abcdefgh12345678'],
    ['postgres://app:s3cr3t@db.example.com/x', 's3cr3t'],
    ['GET /x?api_key=0123abc&page=2', '0123abc'],
    ['{"user":"ada","password":"pa\\"ss wörd"}', 'wörd'],
    ['{"text":"{\\"client_secret\\":\\"shhh-0123\\",\\"n\\":1}"}', 'shhh-0123'],
    ['password: hunter2', 'hunter2'],
    ['-----BEGIN PRIVATE KEY-----\nMIIabc\ndef==\n-----END PRIVATE KEY-----\nafter', 'MIIabc'],
    ['export PGPASSWORD=hunter2 && psql', 'hunter2'],
    ['AWS_SECRET_ACCESS_KEY=abc/def+012\nAWS_REGION=eu', 'abc/def+012'],
    ['MYSQL_PWD=hunter2 mysql', 'hunter2'],
    ['OPENAI_KEY="0123 abc"', '0123 abc'],
    ["db_password = 'hunter2'", 'hunter2'],
    ['db_password = hunter2 # the old one', 'hunter2'],
    ['api_token: 0123abcd', '0123abcd'],
    ['{"db_password":"hunter2"}', 'hunter2'],
    ['{"dbPassword" : "hunter2"}', 'hunter2'],
    ['{ password: "hunter2" }', 'hunter2'],
    ['line one\\npassword: hunter2\\nline three', 'hunter2'],
    ['redis://:s3cr3t@cache:6379/0', 's3cr3t'],
    ['mysql://app:s3cr3t@db.example.com/x', 's3cr3t'],
    ['amqp://app:s3@cr3t@queue', 'cr3t'],
    ['https://0123456789abcdef0123456789@git.example.com/x', '0123456789abcdef'],
    [glued('gs', 'k_', 'a1B2'.repeat(12)), 'a1B2a1B2'],
    [glued('xa', 'i-', 'a1B2'.repeat(12)), 'a1B2a1B2'],
    [glued('AI', 'za', 'a1B2-_'.repeat(6)), 'a1B2-_'],
    [glued('sk-', 'or-v1-', 'a1b2'.repeat(12)), 'a1b2a1b2'],
    [`first\\n${key}`, 'abcdefghij'],
    [`${'eyJ'.repeat(20)}.${'eyJ'.repeat(20)}.sig`, 'eyJeyJ'],
    [
      glued('post to https://hooks.', 'slack.com/services/', 'T01234567/B01234567/', 'a1B2'.repeat(6)),
      'a1B2a1B2',
    ],
    [glued('shop', 'at_', 'a1b2'.repeat(8)).replace('shopat', 'shpat'), 'a1b2a1b2'],
    [glued('gl', 'pat-', 'a1B2'.repeat(5)), 'a1B2a1B2'],
    [glued('h', 'f_', 'abCD'.repeat(8), 'ab'), 'abCDabCD'],
    [glued('lin_', 'api_', 'a1B2'.repeat(10)), 'a1B2a1B2'],
    [glued('S', 'G.', 'a1B2'.repeat(5), 'a1', '.', 'a1B2'.repeat(10), 'a1B'), 'a1B2a1B2'],
    ['Server=db;Uid=app;pwd=hunter22;', 'hunter22'],
    ['GET https://shop.blob.example.com/a.pdf?sv=1&sig=abcd1234%2Bef%3D&se=2', 'abcd1234'],
    ['https://files.example.com/a?X-Amz-Signature=0011223344556677&x=1', '00112233'],
    [`the key is ${'a1b2'.repeat(8)} for now`, 'a1b2a1b2'],
    [`ENCRYPTION KEY: ${'0f'.repeat(32)}`, '0f0f0f'],
  ])('is masked in a text: %s', (text, secret) => {
    const masked = mask.text(text)
    expect(masked).not.toContain(secret)
    expect(masked).toMatch(/\[r|\*\*\*/)
    expect(masked).toHaveLength(text.length)
    expect(JSON.stringify(masked)).toHaveLength(JSON.stringify(text).length)
    expect(mask.text(masked)).toBe(masked)
  })

  it('is masked alone, and the text around it stays the same', () => {
    expect(mask.text(`use ${key}, please`)).toBe(`use [redacted]${'*'.repeat(key.length - 10)}, please`)
    expect(mask.text('GET /x?api_key=0123abc&page=2')).toBe('GET /x?api_key=[redact&page=2')
    expect(mask.text('postgres://app:s3cr3t@db/x')).toBe('postgres://app:[redac@db/x')
  })

  it('is masked whole under the name of a secret, wherever a value holds it', () => {
    const value = {
      headers: { Authorization: 'Basic abc', 'X-Api-Key': ['k1', 'k2'], Accept: '*/*' },
      rows: [{ user: 'ada', passage: 'kept', password: 'hunter two', n: 7, none: null }],
      text: `key ${key}`,
    }
    expect(mask.value(value)).toEqual({
      headers: { Authorization: '[redacted', 'X-Api-Key': ['[r', '[r'], Accept: '*/*' },
      rows: [{ user: 'ada', passage: 'kept', password: '[redacted]', n: 7, none: null }],
      text: `key [redacted]${'*'.repeat(key.length - 10)}`,
    })
  })

  it('is masked as a number where it is one, also within a JSON text', () => {
    expect(mask.value({ password: 482913, pin: 7, nested: { db_password: -0.25 } })).toEqual({
      password: 111111,
      pin: 7,
      nested: { db_password: -1.11 },
    })
    expect(mask.text('{"password":482913,"n":7}')).toBe('{"password":111111,"n":7}')
    expect(mask.text('PGPASSWORD=482913')).toBe('PGPASSWORD=[redac')
    expect(mask.text('{"token":-1.5e+30,"password":[2E7,3]}')).toBe('{"token":-1.1e+30,"password":[1E7,1]}')
  })

  it('is not the schema of a secret, a number of tokens, a digest, an id or plain words', () => {
    const value = {
      properties: { password: { type: 'string', description: 'The password to use.' } },
      usage: { inputTokens: 120, maxTotalTokens: 7 },
      requestDigest: 'b2'.repeat(32),
      runId: '01932f00-0000-7000-8000-000000000001',
      idempotencyKey: '01932f00-0000-7000-8000-000000000001_1_1_1',
      toolCallId: `call_${'0'.repeat(32)}_1_1_1`,
      text: 'The secret of good tea: take your time. A token of thanks; basic manners, bearer of news.',
      code: 'const token = read(); ask-me-anything-about-it',
      task: 'task-force-one-of-the-north desk-research-in-the-field',
      environment: 'PWD=/srv/app OLDPWD=/srv PUBLIC_KEY=abc PRIMARY_KEY=id SORT_KEY=name',
      nextPageToken: 'p-2',
      place: 'https://example.com:8080/a?b=c@d&sig=short',
      digests: `sha256 ${'a1b2'.repeat(16)}, commit ${'a1b2'.repeat(10)}`,
      folder: 'pwd=/srv/app pwd=~/app',
      allowed: '// secretlint-disable',
    }
    expect(mask.value(value)).toEqual(value)
  })

  it('is masked in an escape of JSON by one of the same length, and line ends and quotes stay', () => {
    const text = String.raw`{"password":"a\u100a\u000a\n\u0022\"\u005cb"}`
    const masked = mask.text(text)
    expect(masked).toBe(String.raw`{"password":"[\u0072\u000a\n\u0022\"\u005ce"}`)
    expect(JSON.parse(masked)).toEqual(mask.value(JSON.parse(text)))
  })

  it('is what the caller says it is, besides', () => {
    const own = new SecretMask([/customer (\d+)/i, /Eve\b/])
    expect(own.text('Customer 12345 and customer 678 know Eve.')).toBe(
      'Customer [reda and customer [re know [re.',
    )
    expect(own.text(key)).not.toContain('ant')
    const flagged = new SecretMask([/Eve/g, /Bob/y, /Ann/d, /^Tom$/m])
    expect(flagged.text('Eve, Eve and Bob, Ann\nTom\nTommy')).toBe('[re, [re and [re, [re\n[re\nTommy')
  })

  it('is found between hostile texts, which keep their length and mask the same a second time', () => {
    for (const { name, text } of [...hostileTexts, ...createRepeatedTexts(200)]) {
      const whole = `${text} ${key} ${text}\npassword: hunter2\n`
      const once = mask.text(whole)
      const faults = [
        once.includes(key) && 'the key is left',
        once.includes('hunter2') && 'the password is left',
        once.length !== whole.length && 'the length changed',
        mask.text(once) !== once && 'masked anew, it changed',
      ].filter((fault) => fault !== false)
      expect({ name, faults }).toEqual({ name, faults: [] })
    }
  })

  it('is found at every position, and leaves the length of the text', () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.oneof(fc.string(), fc.constantFrom(key, jwt, 'password: ', '"token":"', '\\"', 'api_key=')),
        ),
        (parts) => {
          const text = parts.join('')
          // Words that end in sk, such as a task-, begin no key.
          fc.pre(!/[a-z]sk-/.test(text))
          const masked = mask.text(text)
          expect(masked).toHaveLength(text.length)
          expect(masked).not.toContain(key)
        },
      ),
    )
  })
})

const words = (text: string): readonly string[] => text.trim().split(/\s+/)

describe('a name of a secret', () => {
  it.each(
    words(`
      password passwords passwd passphrase passcode passwordhash passwordconfirmation secret secrets secretkey
      privatekey signingkey encryptionkey masterkey authkey apikey apikeys accesskey accesskeyid accountkey
      subscriptionkey servicekey token credential credentials connectionstring authorization cookie set-cookie`),
  )('is %s, alone and after other words, however they are written', (name) => {
    const capital = `${name[0]?.toUpperCase()}${name.slice(1)}`
    for (const form of [name, `db_${name}`, `x-${name}`, `my${capital}`, name.toUpperCase(), `${name}2`]) {
      expect([form, isSecretName(form)]).toEqual([form, true])
    }
    expect([`${name}less`, isSecretName(`${name}less`)]).toEqual([`${name}less`, false])
  })

  it('may be written in several words, and may end in a number', () => {
    for (const name of words('api_key api-key Access.Key.Id client_secret_10 password-01 db_pwd_')) {
      expect([name, isSecretName(name)]).toEqual([name, true])
    }
    for (const name of ['', '12', '2', 'word', 'tokens', 'password_2_hint']) {
      expect([name, isSecretName(name)]).toEqual([name, false])
    }
  })

  it('may be a short word after another, and not alone', () => {
    for (const name of words('db_pwd MYSQL_PWD db-pass user_pw')) expect(isSecretName(name)).toBe(true)
    for (const name of words('pwd PWD pass pw pw_db OLDPWD compass')) expect(isSecretName(name)).toBe(false)
  })

  it('is that of a key in the environment, where it is not a key that all may know', () => {
    for (const name of words('OPENAI_KEY MY_OWN_KEY openai-KEY')) expect(isSecretName(name)).toBe(true)
    for (const name of words(`
      KEY openai_key OPENAI_KEYS KEY_OPENAI PUBLIC_KEY PRIMARY_KEY FOREIGN_KEY PARTITION_KEY SORT_KEY IDEMPOTENCY_KEY
      SSH_PUBLIC_KEY`)) {
      expect([name, isSecretName(name)]).toEqual([name, false])
    }
  })

  it('is not that of a place in a list', () => {
    for (const name of words('page next previous continuation cursor sync')) {
      expect([name, isSecretName(`${name}Token`), isSecretName(`${name}_token_2`)]).toEqual([
        name,
        false,
        false,
      ])
    }
    expect(isSecretName('nextSecret')).toBe(true)
  })

  it('is not plainly one where it is a word of sentences', () => {
    for (const name of words('token Token secret secrets credential credentials SECRET page pageToken')) {
      expect([name, isPlainlySecret(name)]).toEqual([name, false])
    }
    for (const name of words('api_token my-secret tokens_secret password')) {
      expect([name, isPlainlySecret(name)]).toEqual([name, true])
    }
  })
})

/** What code comes to that is run as a function. */
function run(code: string): unknown {
  // oxlint-disable-next-line no-implied-eval, typescript/no-implied-eval -- generated code is tried as code
  return (new Function(code) as () => unknown)()
}

describe('text in generated source code', () => {
  it('is a string literal that comes to the text, and runs nothing of it', () => {
    for (const { name, text } of hostileTexts) {
      expect({ name, text: run(`return ${toStringLiteral(text)}`) }).toEqual({ name, text })
    }
    expect(globalThis).not.toHaveProperty('tallystickRan')
  })

  it('stays in a line comment', () => {
    for (const { name, text } of hostileTexts) {
      expect({ name, ran: run(`// ${toComment(text)}\nreturn 'what follows'`) }).toEqual({
        ...{ name, ran: 'what follows' },
      })
    }
    expect(globalThis).not.toHaveProperty('tallystickRan')
  })

  it('shows a reviewer everything: no control, direction mark or invisible character is left', () => {
    for (const { text } of hostileTexts) {
      expect(toStringLiteral(text)).not.toMatch(/[\p{C}\p{Zl}\p{Zp}]/u)
      expect(toComment(text)).not.toMatch(/[\p{C}\p{Zl}\p{Zp}]/u)
    }
    expect(toStringLiteral("It's 21 °C in 서울.")).toBe(String.raw`'It\'s 21 °C in 서울.'`)
  })

  it('is imported only under a name that is an identifier', () => {
    expect(requireIdentifier('agents_2')).toBe('agents_2')
    for (const { text } of hostileTexts.filter(({ border }) => border === 'code' || border === 'shell')) {
      expect(() => requireIdentifier(text)).toThrow(ConfigurationError)
    }
  })
})
