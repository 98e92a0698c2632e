import { describe, expect, it } from 'vitest'
import { isPlainlySecret, isSecretName } from '../src/secrets.ts'

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
