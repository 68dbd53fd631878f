"""What the stand-in says, in four languages. One field a sentence, so that none can be missing in a language."""

from __future__ import annotations

from dataclasses import dataclass

from .words import Language


@dataclass(frozen=True, slots=True)
class Phrases:
    """The sentences of one language, with the facts that they take in braces."""

    day: str
    days: str
    refundable: str
    in_window: str
    amount: str
    past_window: str
    wrong_status: str
    not_yet: str
    no_date: str
    settled: str
    no_policy: str
    refunded_before: str
    stands: str
    stands_delivered: str
    not_found: str
    not_read: str
    not_looked_up: str
    paid: str
    paid_to: str
    paid_other: str
    held: str
    unconfirmed: str
    cannot_pay: str
    handed_over: str
    not_handed_over: str
    nobody: str
    ask_code: str
    ask_amount: str
    help: str


PHRASES = {
    Language.ENGLISH: Phrases(
        day="{n} day",
        days="{n} days",
        refundable="Yes, order {code} can be refunded.",
        in_window="It was delivered on {delivered}, {ago} ago, within {window} of delivery as the policy asks.",
        amount="Amount: {left}.",
        past_window="No, order {code} cannot be refunded: it was delivered on {delivered}, {ago} ago, and the policy"
        " allows {window}.",
        wrong_status="No, order {code} cannot be refunded now: its status is {status}, and the policy asks for"
        " {wanted}.",
        not_yet="No, order {code} cannot be refunded: its delivery date {delivered} lies after {today}.",
        no_date="No, order {code} cannot be refunded: the shop has no delivery date for it, and the policy counts"
        " {window} from delivery.",
        settled="No, nothing is left to refund of order {code}: its total of {total} was paid back already.",
        no_policy="I could not read the refund policy, so I cannot say whether order {code} can be refunded.",
        refunded_before="{refunded} of its total of {total} was paid back before.",
        stands="Order {code}: its status is {status}, it was placed on {ordered}, and its total is {total}.",
        stands_delivered="Order {code}: its status is {status}, it was placed on {ordered} and delivered on"
        " {delivered}, and its total is {total}.",
        not_found="I found no order {code}. Please check the code.",
        not_read="I could not look up order {code}. What I was told: “{text}”",
        not_looked_up="I have not looked up order {code}.",
        paid="Done: {amount} was refunded for order {code} (receipt {receipt}).",
        paid_to="It went to the account {account}.",
        paid_other="I had proposed {asked} for order {proposed}; this is what was decided and paid.",
        held="Order {code} was not refunded. What I was told: “{text}”",
        unconfirmed="I cannot confirm a refund for order {code}. What I was told: “{text}”",
        cannot_pay="I have no tool here to pay it.",
        handed_over="I have handed this over to a person.",
        not_handed_over="I could not hand this over to a person. What I was told: “{text}”",
        nobody="I have no tool here to hand this over to a person.",
        ask_code="Which order is it about? Please tell me its code.",
        ask_amount="How much shall I refund? Please say one whole number, in the smallest unit of the currency, for one"
        " order, or leave the amount out to refund all of it.",
        help="I can say how an order stands, whether it can be refunded, and ask for its refund; or hand you over to a"
        " person. Please tell me the code of your order.",
    ),
    Language.SPANISH: Phrases(
        day="{n} día",
        days="{n} días",
        refundable="Sí, el pedido {code} se puede reembolsar.",
        in_window="Se entregó el {delivered}, hace {ago}, dentro del plazo de {window} desde la entrega que pide la"
        " política.",
        amount="Importe: {left}.",
        past_window="No, el pedido {code} no se puede reembolsar: se entregó el {delivered}, hace {ago}, y la política"
        " permite {window}.",
        wrong_status="No, el pedido {code} no se puede reembolsar ahora: su estado es {status}, y la política pide"
        " {wanted}.",
        not_yet="No, el pedido {code} no se puede reembolsar: su fecha de entrega {delivered} es posterior a {today}.",
        no_date="No, el pedido {code} no se puede reembolsar: la tienda no tiene su fecha de entrega, y la política"
        " cuenta {window} desde la entrega.",
        settled="No, no queda nada por reembolsar del pedido {code}: su total de {total} ya fue devuelto.",
        no_policy="No pude leer la política de reembolsos, así que no puedo decir si el pedido {code} se puede"
        " reembolsar.",
        refunded_before="De su total de {total} ya se devolvieron {refunded}.",
        stands="Pedido {code}: su estado es {status}, se hizo el {ordered} y su total es {total}.",
        stands_delivered="Pedido {code}: su estado es {status}, se hizo el {ordered}, se entregó el {delivered} y su"
        " total es {total}.",
        not_found="No encontré el pedido {code}. Por favor, revise el código.",
        not_read="No pude consultar el pedido {code}. Lo que me dijeron: «{text}»",
        not_looked_up="No he consultado el pedido {code}.",
        paid="Hecho: se reembolsaron {amount} del pedido {code} (recibo {receipt}).",
        paid_to="Fueron a la cuenta {account}.",
        paid_other="Yo había propuesto {asked} para el pedido {proposed}; esto es lo que se decidió y se pagó.",
        held="El pedido {code} no fue reembolsado. Lo que me dijeron: «{text}»",
        unconfirmed="No puedo confirmar un reembolso del pedido {code}. Lo que me dijeron: «{text}»",
        cannot_pay="Aquí no tengo herramienta para pagarlo.",
        handed_over="He pasado este asunto a una persona.",
        not_handed_over="No pude pasar este asunto a una persona. Lo que me dijeron: «{text}»",
        nobody="Aquí no tengo herramienta para pasar este asunto a una persona.",
        ask_code="¿De qué pedido se trata? Por favor, dígame su código.",
        ask_amount="¿Cuánto debo reembolsar? Por favor, diga un solo número entero, en la unidad más pequeña de la"
        " moneda y para un solo pedido, o no diga ninguno para reembolsarlo todo.",
        help="Puedo decir cómo va un pedido, si se puede reembolsar, y pedir su reembolso; o pasarle con una persona."
        " Por favor, dígame el código de su pedido.",
    ),
    Language.PORTUGUESE: Phrases(
        day="{n} dia",
        days="{n} dias",
        refundable="Sim, o pedido {code} pode ser reembolsado.",
        in_window="Foi entregue em {delivered}, há {ago}, dentro do prazo de {window} após a entrega que a política"
        " exige.",
        amount="Valor: {left}.",
        past_window="Não, o pedido {code} não pode ser reembolsado: foi entregue em {delivered}, há {ago}, e a política"
        " permite {window}.",
        wrong_status="Não, o pedido {code} não pode ser reembolsado agora: seu estado é {status}, e a política exige"
        " {wanted}.",
        not_yet="Não, o pedido {code} não pode ser reembolsado: sua data de entrega {delivered} é posterior a {today}.",
        no_date="Não, o pedido {code} não pode ser reembolsado: a loja não tem a data de entrega, e a política conta"
        " {window} a partir da entrega.",
        settled="Não, não resta nada a reembolsar do pedido {code}: o total de {total} já foi devolvido.",
        no_policy="Não consegui ler a política de reembolso, por isso não posso dizer se o pedido {code} pode ser"
        " reembolsado.",
        refunded_before="Do total de {total} já foram devolvidos {refunded}.",
        stands="Pedido {code}: seu estado é {status}, foi feito em {ordered} e o total é {total}.",
        stands_delivered="Pedido {code}: seu estado é {status}, foi feito em {ordered}, entregue em {delivered}, e o"
        " total é {total}.",
        not_found="Não encontrei o pedido {code}. Por favor, verifique o código.",
        not_read="Não consegui consultar o pedido {code}. O que me disseram: “{text}”",
        not_looked_up="Não consultei o pedido {code}.",
        paid="Feito: {amount} foram reembolsados do pedido {code} (recibo {receipt}).",
        paid_to="Foram para a conta {account}.",
        paid_other="Eu havia proposto {asked} para o pedido {proposed}; isto é o que foi decidido e pago.",
        held="O pedido {code} não foi reembolsado. O que me disseram: “{text}”",
        unconfirmed="Não posso confirmar um reembolso do pedido {code}. O que me disseram: “{text}”",
        cannot_pay="Não tenho aqui ferramenta para pagá-lo.",
        handed_over="Passei este assunto a uma pessoa.",
        not_handed_over="Não consegui passar este assunto a uma pessoa. O que me disseram: “{text}”",
        nobody="Não tenho aqui ferramenta para passar este assunto a uma pessoa.",
        ask_code="De qual pedido se trata? Por favor, diga-me o código.",
        ask_amount="Quanto devo reembolsar? Por favor, diga um só número inteiro, na menor unidade da moeda e para um"
        " só pedido, ou nenhum para reembolsar tudo.",
        help="Posso dizer como está um pedido, se pode ser reembolsado, e pedir o reembolso; ou passar o assunto a uma"
        " pessoa. Por favor, diga-me o código do seu pedido.",
    ),
    Language.FRENCH: Phrases(
        day="{n} jour",
        days="{n} jours",
        refundable="Oui, la commande {code} peut être remboursée.",
        in_window="Elle a été livrée le {delivered}, il y a {ago}, dans le délai de {window} après la livraison que la"
        " politique demande.",
        amount="Montant : {left}.",
        past_window="Non, la commande {code} ne peut pas être remboursée : elle a été livrée le {delivered}, il y a"
        " {ago}, et la politique accorde {window}.",
        wrong_status="Non, la commande {code} ne peut pas être remboursée maintenant : son statut est {status}, et la"
        " politique demande {wanted}.",
        not_yet="Non, la commande {code} ne peut pas être remboursée : sa date de livraison {delivered} est postérieure"
        " au {today}.",
        no_date="Non, la commande {code} ne peut pas être remboursée : la boutique n'a pas sa date de livraison, et la"
        " politique compte {window} à partir de la livraison.",
        settled="Non, il ne reste rien à rembourser de la commande {code} : son total de {total} a déjà été rendu.",
        no_policy="Je n'ai pas pu lire la politique de remboursement, je ne peux donc pas dire si la commande {code}"
        " peut être remboursée.",
        refunded_before="De son total de {total}, {refunded} ont déjà été rendus.",
        stands="Commande {code} : son statut est {status}, elle a été passée le {ordered}, et son total est {total}.",
        stands_delivered="Commande {code} : son statut est {status}, elle a été passée le {ordered} et livrée le"
        " {delivered}, et son total est {total}.",
        not_found="Je n'ai pas trouvé de commande {code}. Veuillez vérifier le code.",
        not_read="Je n'ai pas pu consulter la commande {code}. Ce qu'on m'a dit : « {text} »",
        not_looked_up="Je n'ai pas consulté la commande {code}.",
        paid="C'est fait : {amount} ont été remboursés pour la commande {code} (reçu {receipt}).",
        paid_to="Ils sont allés sur le compte {account}.",
        paid_other="J'avais proposé {asked} pour la commande {proposed} ; c'est ce qui a été décidé et payé.",
        held="La commande {code} n'a pas été remboursée. Ce qu'on m'a dit : « {text} »",
        unconfirmed="Je ne peux pas confirmer de remboursement pour la commande {code}. Ce qu'on m'a dit : « {text} »",
        cannot_pay="Je n'ai pas d'outil ici pour la payer.",
        handed_over="J'ai transmis cette demande à une personne.",
        not_handed_over="Je n'ai pas pu transmettre cette demande à une personne. Ce qu'on m'a dit : « {text} »",
        nobody="Je n'ai pas d'outil ici pour transmettre cette demande à une personne.",
        ask_code="De quelle commande s'agit-il ? Veuillez me donner son code.",
        ask_amount="Combien dois-je rembourser ? Veuillez donner un seul nombre entier, dans la plus petite unité de la"
        " monnaie et pour une seule commande, ou aucun pour tout rembourser.",
        help="Je peux dire où en est une commande, si elle peut être remboursée, et demander son remboursement ; ou"
        " vous passer une personne. Veuillez me donner le code de votre commande.",
    ),
}
