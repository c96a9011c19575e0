import { generateKeyPairSync, type KeyObject, sign } from "node:crypto";

/** A certificate and its key, as PEM text. */
export interface TestCertificate {
  readonly cert: string;
  readonly key: string;
}

const lastDay = new Date(Date.UTC(2049, 11, 31, 23, 59, 59));

/** Signs certificates of tests: P-256 keys, ECDSA with SHA-256, valid from 2020 until 2049 or a given time (RFC 5280, written in DER). */
export class TestAuthority implements TestCertificate {
  readonly cert: string;
  readonly key: string;
  readonly #name: string;
  readonly #signer: KeyObject;
  #serial = 1;

  constructor(name: string) {
    const { privateKey, publicKey } = makeKeys();
    this.#name = name;
    this.#signer = privateKey;
    this.cert = this.#certify(name, publicKey, [extension(basicConstraints, sequence(bool(true)))]);
    this.key = pemOfKey(privateKey);
  }

  /** A certificate for the address of this machine, which serves for clients too. */
  issue(name: string, until = lastDay): TestCertificate {
    const { privateKey, publicKey } = makeKeys();
    const address = tagged(0x87, Buffer.from([127, 0, 0, 1]));
    const host = tagged(0x82, Buffer.from("localhost"));
    const names = [extension(altName, sequence(address, host))];
    const cert = this.#certify(name, publicKey, names, until);
    return { cert, key: pemOfKey(privateKey) };
  }

  #certify(name: string, key: KeyObject, extensions: readonly Buffer[], until = lastDay): string {
    const end = until.toISOString().replaceAll(/[-:T]/g, "").slice(2, 14);
    const body = sequence(
      tagged(0xa0, integer(2)),
      integer(this.#serial++),
      sequence(ecdsaWithSha256),
      nameOf(this.#name),
      sequence(utcTime("200101000000Z"), utcTime(`${end}Z`)),
      nameOf(name),
      key.export({ type: "spki", format: "der" }),
      tagged(0xa3, sequence(...extensions)),
    );
    const signature = bits(sign("sha256", body, this.#signer));
    return pem("CERTIFICATE", sequence(body, sequence(ecdsaWithSha256), signature));
  }
}

function makeKeys() {
  return generateKeyPairSync("ec", { namedCurve: "P-256" });
}

function pemOfKey(key: KeyObject): string {
  return key.export({ type: "pkcs8", format: "pem" }) as string;
}

function pem(kind: string, der: Buffer): string {
  const lines = der.toString("base64").replace(/.{64}/g, "$&\n").trimEnd();
  return `-----BEGIN ${kind}-----\n${lines}\n-----END ${kind}-----\n`;
}

function tagged(tag: number, ...parts: readonly Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  const { length } = content;
  const long = [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...(length < 0x80 ? [length] : long)]), content]);
}

const sequence = (...parts: readonly Buffer[]) => tagged(0x30, ...parts);
const integer = (value: number) => tagged(0x02, Buffer.from([value]));
const bool = (value: boolean) => tagged(0x01, Buffer.from([value ? 0xff : 0]));
const utcTime = (text: string) => tagged(0x17, Buffer.from(text));
const bits = (bytes: Buffer) => tagged(0x03, Buffer.from([0]), bytes);
const oid = (hex: string) => tagged(0x06, Buffer.from(hex, "hex"));
const extension = (id: Buffer, value: Buffer) => sequence(id, tagged(0x04, value));

const ecdsaWithSha256 = oid("2a8648ce3d040302");
const commonName = oid("550403");
const basicConstraints = oid("551d13");
const altName = oid("551d11");

function nameOf(text: string): Buffer {
  return sequence(tagged(0x31, sequence(commonName, tagged(0x0c, Buffer.from(text)))));
}
