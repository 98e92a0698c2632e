import { createPublicKey, generateKeyPairSync } from 'node:crypto'
import { ConfigurationError } from '@tallystick/core'
import { describe, expect, it } from 'vitest'
import {
  isSignedBy,
  signNote,
  readSigningKey,
  formatVerifierKey,
  readVerifyingKey,
} from '../src/checkpoint/signed-note.ts'

describe('a signed note', () => {
  // The example of Go's implementation, which the form comes from.
  const verifier = 'PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW'
  const text =
    "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n"
  const signature =
    '\u2014 PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM='

  it('is read as others write it', () => {
    const { name = '', key } = readVerifyingKey(verifier)
    expect(isSignedBy(text, [signature], { name, key })).toBe(true)
    expect(isSignedBy(text, ['\u2014 someone.else AAAAAAAA', signature], { name, key })).toBe(true)
    expect(isSignedBy(`${text} `, [signature], { name, key })).toBe(false)
    expect(isSignedBy(text, [signature.replace('x08', 'x18')], { name, key })).toBe(false)
    expect(isSignedBy(text, [], { name, key })).toBe(false)
    // The last digit has bits that say nothing: another one stands for the same bytes.
    const digits = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'
    const other = signature.replace(/.(?==$)/, (last) => digits[digits.indexOf(last) + 1] ?? '')
    expect(other).not.toBe(signature)
    expect(isSignedBy(text, [other], { name, key })).toBe(false)
  })

  it('is written as others read it, down to the byte', () => {
    // PRIVATE+KEY+PeterNeumann+c74f20a3+… of the same example, as the seed of the key.
    const seed = Buffer.from('AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz', 'base64').subarray(1)
    const der = Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), seed])
    const pem = `-----BEGIN PRIVATE KEY-----\n${der.toString('base64')}\n-----END PRIVATE KEY-----\n`
    const key = readSigningKey(pem)
    expect(signNote(text, { name: 'PeterNeumann', key })).toBe(`${text}\n${signature}\n`)
    expect(
      formatVerifierKey('PeterNeumann', createPublicKey(key).export({ type: 'spki', format: 'pem' })),
    ).toBe(verifier)
  })

  it('refuses keys that cannot sign or verify it', () => {
    const { privateKey, publicKey } = generateKeyPairSync('ed25519')
    const rsa = generateKeyPairSync('rsa', { modulusLength: 1024 })
    expect(readSigningKey(privateKey)).toBe(privateKey)
    expect(readVerifyingKey(publicKey)).toEqual({ key: publicKey })
    for (const key of ['no key', publicKey, rsa.privateKey]) {
      expect(() => readSigningKey(key)).toThrow(ConfigurationError)
    }
    for (const key of [
      'no key',
      rsa.publicKey,
      privateKey,
      verifier.replace('+c7', '+c8'),
      'a+00000000+AAAA',
    ]) {
      expect(() => readVerifyingKey(key)).toThrow(ConfigurationError)
    }
    expect(() => readVerifyingKey('no key')).toThrow('openssl genpkey -algorithm ed25519')
    for (const origin of ['', 'two words', 'a+b', 'line\nfeed']) {
      expect(() => formatVerifierKey(origin, publicKey)).toThrow(ConfigurationError)
    }
  })
})
