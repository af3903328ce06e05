// A minimal FIX 4.4 client: logs on and sends an order.

import { connect } from 'node:net';

const SOH = '\x01';

export class FixClient {
  #socket;
  #seq = 1;
  #received = '';

  /** Connects and logs on. */
  async open(address, { sender = 'CLIENT1', target = 'PITLANE' } = {}) {
    const [host, port] = address.split(':');
    this.ids = [`49=${sender}`, `56=${target}`];
    this.#socket = connect(Number(port), host);
    this.#socket.on('data', (bytes) => (this.#received += bytes.toString('latin1')));
    await new Promise((done, fail) => this.#socket.once('connect', done).once('error', fail));
    this.#send('A', ['98=0', '108=30', '141=Y']);
    await this.waitFor('35=A');
    return this;
  }

  order({ id, security, symbol, side, quantity, limit }) {
    this.#send('D', [
      `11=${id}`,
      `48=${security}`,
      '22=8',
      `55=${symbol}`,
      `54=${side}`,
      `60=${now()}`,
      `38=${quantity}`,
      '40=2',
      `44=${limit}`,
      '59=0',
    ]);
  }

  /** Waits until a field arrives. Throws if the connection ends first. */
  async waitFor(field) {
    while (!this.#received.includes(`${SOH}${field}${SOH}`)) {
      if (this.#socket.readableEnded || this.#socket.destroyed)
        throw new Error(`the session ended: ${this.#received.replaceAll(SOH, '|')}`);
      await new Promise((done) => this.#socket.once('data', done).once('close', done));
    }
  }

  close() {
    this.#socket.destroy();
  }

  #send(type, fields) {
    const body = [`35=${type}`, `34=${this.#seq++}`, ...this.ids, `52=${now()}`, ...fields].join(SOH) + SOH;
    const head = `8=FIX.4.4${SOH}9=${body.length}${SOH}`;
    const sum = [...Buffer.from(head + body, 'latin1')].reduce((total, byte) => total + byte, 0) % 256;
    this.#socket.write(`${head}${body}10=${String(sum).padStart(3, '0')}${SOH}`, 'latin1');
  }
}

const now = () => new Date().toISOString().replaceAll('-', '').replace('T', '-').replace('Z', '');
