package flow

import (
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/tree"
)

// messageHandlers are the names that libraries for messages call, or that their
// documentation gives to what is called with a message.
var messageHandlers = map[string]bool{
	"on_message": true, "onmessage": true, "onMessage": true, "on_msg": true, "handle_message": true, "handleMessage": true, "message_handler": true,
	"on_publish_received": true, "on_text": true, "on_privmsg": true, "on_pubmsg": true,
}

// messageModules are libraries by which messages of others arrive.
var messageModules = map[string]bool{
	"websocket": true, "websockets": true, "paho": true, "discord": true, "telegram": true, "telebot": true, "aiogram": true, "slack_bolt": true,
	"slack_sdk": true, "socketio": true, "irc": true, "pika": true, "zmq": true, "nats": true, "slixmpp": true, "sleekxmpp": true, "stomp": true,
}

// received is what a parameter that nothing was given for stands for: in a handler
// of messages, what somebody sent.
func (m *Machine) received(fn *Fn) Value {
	if !messageHandlers[m.T.Text(fn.Node)] && !m.handlesMessages(fn) {
		return Value{}
	}

	for i := range m.R.Effects {
		if e := &m.R.Effects[i]; e.Kind == effect.Import {
			if module, _, _ := strings.Cut(e.Target.Text, "."); messageModules[module] {
				return Tainted(effect.TaintNetwork, "")
			}
		}
	}

	return Value{}
}

// handlesMessages says whether a decorator makes a function a handler of
// messages: @bot.message_handler(...), @client.on(...).
func (m *Machine) handlesMessages(fn *Fn) bool {
	t := fn.Tree

	for d := t.At(fn.Node).C; d != 0; d = t.At(d).Next {
		x := d
		if t.At(x).Kind == tree.Call {
			x = t.At(x).A
		}

		if t.At(x).Kind != tree.Attr {
			continue
		}

		switch t.Text(x) {
		case "message_handler", "on_message", "message", "command", "event", "on", "handler", "callback_query_handler", "slash_command":
			return true
		}
	}

	return false
}
