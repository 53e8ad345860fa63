// The way in where the monitor asks for a token.
import { h, sentence } from './dom.js';
import { post } from './api.js';

export default {
  name: 'login',
  // show draws the form; done is called with a session.
  show(root, done) {
    const input = h('input', { id: 'token', name: 'token', type: 'password', autocomplete: 'current-password', required: true, spellcheck: 'false', 'aria-describedby': 'token-hint token-error' });
    const error = h('p', { id: 'token-error', class: 'error', role: 'alert' });
    const button = h('button', { type: 'submit', class: 'primary' }, 'Open');
    root.append(h('form', {
      class: 'login card',
      onsubmit: async e => {
        e.preventDefault();
        error.textContent = '';
        button.disabled = true;
        try {
          await post('session', { token: input.value.trim() });
          input.value = '';
          await done();
        } catch (problem) {
          error.textContent = problem.status === 401 || problem.status === 403 ? 'That is not the token.' : `${sentence(problem.message)} ${sentence(problem.hint)}`;
          input.setAttribute('aria-invalid', 'true');
          input.focus();
        } finally {
          button.disabled = false;
        }
      },
    },
    h('h1', { tabindex: '-1' }, 'Who is there?'),
    h('p', { id: 'token-hint' }, 'This monitor asks for its token. It is in the file that ', h('code', null, 'http.token_file'), ' names.'),
    h('label', { for: 'token' }, 'Token'), input, error, button));
  },
};
